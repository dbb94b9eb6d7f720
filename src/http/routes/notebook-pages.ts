import { MAX_PAGE_BODY_BYTES, type PageAccess, type PageCredential } from '#src/base/caller/page-access.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { NotebookUrl } from '#src/base/json/notebook-url.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { FrontEndFiles } from '#src/notebook/pages/front-end-files.ts';
import type { NotebookPages } from '#src/notebook/pages/notebook-pages.ts';
import type { PageAnswer } from '#src/notebook/pages/page-requests.ts';
import type { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import type { AuditedChange } from '#src/people/audit/audit-trail.ts';
import { isSecureOrigin, publicOriginOf } from '../edge/origin.ts';
import { auditContextOf } from '../handlers/audited-routes.ts';
import { pageHandling } from '../page-files.ts';
import { attachment } from '../reply/content-headers.ts';
import { created, encodedJson, json, type Reply, raw, sharedDocument, stream } from '../reply/reply.ts';
import { type AnyRouteRequest, defineRoute, PAGE_COOKIE, type Route } from '../route.ts';
import type { BrowserRoutesContext } from './browser-routes-context.ts';
import { PAGE_POLICY } from './console.ts';
import { frontEndPath } from './front-end.ts';
import { CONTENT_TYPES } from './notebooks.ts';

/** Issues the credentials of pages. */
export interface PageCredentials {
  issue(
    kind: PageCredential,
    grant: { readonly principal: Principal; readonly notebookId: string; readonly access: PageAccess },
  ): { readonly text: string; readonly expiresAtMs: number };
  /** Uses a code up. Throws `unauthenticated` when the code was used before. */
  use(code: string): void;
  /** Returns the access that a page of this caller gets; `asked` is the access that the caller wants. */
  accessOf(principal: Principal, asked: PageAccess | undefined): PageAccess;
}

export interface NotebookPageRoutesOptions {
  readonly pages: NotebookPages;
  readonly sessions: NotebookSessions;
  readonly credentials: PageCredentials;
  readonly frontEnd: FrontEndFiles;
}

export const COMMON = { tags: ['Notebook sessions'], isUndocumented: true } as const;
/** The common part of requests that marimo's page sends. The page has no origin, and each request has its token. */
export const FROM_PAGE = {
  ...COMMON,
  access: { action: 'session.read' },
  credential: 'page',
  anyOrigin: true,
} as const;

/** The requests of pages that write into the audit, by their path below `api/`. Edits of cells are not among them. */
const AUDITED: ReadonlySet<string> = new Set([
  'kernel/copy',
  'kernel/restart_session',
  'kernel/shutdown',
  'secrets/create',
]);

/** Redirects from marimo's page to the page that shows it in a frame. */
const TO_NOTEBOOK = { kind: 'empty', status: 303, headers: { location: '../' } } as const;

/**
 * The policy of the page around marimo's page. `data:` and `blob:` are allowed because Firefox treats a download that begins in a
 * frame as a navigation of the frame. A document with such an address has the policy of marimo's page and no origin.
 */
const AROUND_NOTEBOOK = PAGE_POLICY.replace("frame-src 'self'", "frame-src 'self' data: blob:");

/**
 * The header lets the page read answers to requests that are not of the mode `cors`. The page has no origin, so no answer has the
 * same origin.
 */
export const READABLE = { 'cross-origin-resource-policy': 'cross-origin' };

/** Returns the function for the addresses of notebooks: below `publicUrl`, or else paths below the address of the server. */
export function notebookUrls(publicUrl: string | undefined): NotebookUrl {
  const base = publicUrl?.replace(/(?<!\/)\/+$/, '') ?? '';
  // The path is split only once, because each answer with a notebook contains the notebook's
  // address. Ids need no escaping.
  const [before = '', after = ''] = pathOf('getNotebookPage', { notebookId: 'ID' }).split('ID');
  return (notebookId) => `${base}${before}${notebookId}${after}`;
}

/** The pages of notebooks in browsers: the route that opens one, the page, and the requests that it sends. */
export function notebookPageRoutes(
  browsers: BrowserRoutesContext,
  options: NotebookPageRoutesOptions,
): readonly Route[] {
  const { files, publicUrl } = browsers;
  const { pages, sessions, credentials, frontEnd } = options;
  const parts = { ...browsers, ...options };
  return [
    defineRoute({
      ...OPERATIONS.createNotebookPage,
      summary: 'Open a live session in a browser',
      description:
        "Returns the address of marimo's page on this session. People, agents and API clients work in one notebook there, and see each " +
        'other. The address works once, within a minute; then the browser keeps a cookie for this notebook only. The page ends after ' +
        'twelve hours, or earlier with the access token that opened it.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      secretAnswer: true,
      errors: ['session_closed'],
      handle({ principal, params: { sessionId }, body }) {
        if (sessions.isClosed(principal.workspaceId, sessionId))
          throw new AppError('session_closed', `The session ${sessionId} is closed. Open it again first.`);
        const access = credentials.accessOf(principal, body.access ?? undefined);
        const { text, expiresAtMs } = credentials.issue('code', { principal, notebookId: sessionId, access });
        const url = pathOf('openNotebookPage', { notebookId: sessionId, code: text });
        return created({ url, access, expiresAt: timestamp(expiresAtMs) }, url);
      },
    }),
    defineRoute({
      ...OPERATIONS.openNotebookPage,
      ...COMMON,
      summary: 'Go to the page of a notebook, by its one-time address',
      access: { action: 'session.read' },
      credential: 'code',
      isPage: true,
      // The one-time address was used or has expired. A browser is redirected to the lasting address, which shows the notebook or
      // the page for signing in.
      handleStranger({ headers }) {
        if (headers.accept.includes('text/html')) return TO_NOTEBOOK;
        throw new AppError('unauthenticated', 'This address works once, within a minute. Ask for a new one.');
      },
      handle({ principal, params: { notebookId, code }, headers, headOnly }) {
        // Programs that preview or check links send HEAD, and must not use the address up.
        if (headOnly) return TO_NOTEBOOK;
        try {
          credentials.use(code);
        } catch (error) {
          if (error instanceof AppError && headers.accept.includes('text/html')) return TO_NOTEBOOK;
          throw error;
        }
        const access = principal.pageAccess ?? 'view';
        const { text, expiresAtMs } = credentials.issue('cookie', { principal, notebookId, access });
        const maxAgeS = Math.floor((expiresAtMs - Date.now()) / 1000);
        const path = pathOf('getNotebookPage', { notebookId });
        const secure = isSecureOrigin(headers['x-forwarded-proto'], publicUrl) ? '; Secure' : '';
        return {
          kind: 'empty',
          status: 303,
          headers: {
            location: `../`,
            'set-cookie': `${PAGE_COOKIE}=${text}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Lax${secure}`,
          },
        };
      },
    }),
    defineRoute({
      ...OPERATIONS.redirectToNotebookPage,
      ...COMMON,
      access: 'public',
      isPage: true,
      summary: 'Go to the page of a notebook',
      handle: ({ params: { notebookId } }) =>
        ({
          kind: 'empty',
          status: 308,
          headers: { location: `${encodeURIComponent(notebookId)}/` },
        }) as const,
    }),
    // The lasting address of a notebook, which people keep and send. The page is the same for every notebook. A browser with the
    // cookie sees marimo's page in a frame, with the people in the notebook and its agent. Other browsers are led to signing in.
    defineRoute({
      ...OPERATIONS.getNotebookPage,
      ...pageHandling(files, AROUND_NOTEBOOK, 'notebook.html'),
      ...COMMON,
      summary: 'Read the page of a notebook',
    }),
    defineRoute({
      ...OPERATIONS.getNotebookDocument,
      largeAnswer: true,
      ...COMMON,
      summary: "Read marimo's page of a notebook",
      access: { action: 'session.read' },
      credential: 'cookie',
      isPage: true,
      errors: ['session_closed', 'unavailable'],
      handleStranger({ headers }) {
        if (headers.accept.includes('text/html')) return TO_NOTEBOOK;
        throw new AppError(
          'unauthenticated',
          'Open the notebook with its one-time address, or sign in with a browser.',
        );
      },
      async handle({ principal, params, headers }) {
        const { notebookId } = params;
        const isClosed = sessions.isClosed(principal.workspaceId, notebookId);
        if (isClosed && headers.accept.includes('text/html')) return TO_NOTEBOOK;
        const origin = publicUrl ?? publicOriginOf(headers.host, headers['x-forwarded-proto']);
        const access = principal.pageAccess ?? 'view';
        const { text } = credentials.issue('page', { principal, notebookId, access });
        const publicFiles = credentials.issue('public', { principal, notebookId, access: 'view' });
        const { html, policy } = await pages.html(principal, notebookId, {
          address: `${origin}${pathOf('getNotebookPage', { notebookId })}`,
          origin: new URL(origin).origin,
          pageToken: text,
          publicCode: publicFiles.text,
        });
        return raw('text/html; charset=utf-8', html, {
          'cache-control': 'no-store',
          'content-security-policy': policy,
          'cross-origin-opener-policy': 'same-origin',
          'referrer-policy': 'no-referrer',
        });
      },
    }),
    defineRoute({
      ...OPERATIONS.followNotebookPage,
      ...FROM_PAGE,
      summary: 'Follow a notebook as its page does',
      isPage: true,
      errors: ['session_closed', 'at_capacity', 'quota_exceeded'],
      handle: ({ principal, params: { notebookId }, query }) =>
        sessions.whenReadable(principal.workspaceId, notebookId, () =>
          stream(pages.follow(principal, notebookId, query.session_id)),
        ),
    }),
    defineRoute({
      ...OPERATIONS.followNotebookPresence,
      ...COMMON,
      summary: 'Follow the people and the agent in a notebook',
      access: { action: 'session.read' },
      credential: 'cookie',
      sameOrigin: true,
      isPage: true,
      errors: ['session_closed', 'at_capacity', 'quota_exceeded'],
      handle: ({ principal, params: { notebookId } }) =>
        sessions.whenReadable(principal.workspaceId, notebookId, () =>
          stream(pages.followPresence(principal, notebookId)),
        ),
    }),
    defineRoute({
      ...OPERATIONS.readFromNotebookPage,
      ...FROM_PAGE,
      summary: 'Answer a GET request that the page of a notebook sends',
      isPage: true,
      errors: ['session_closed'],
      handle: (request) => answer(parts, 'GET', { ...request, body: undefined }),
    }),
    defineRoute({
      ...OPERATIONS.renewPublicCode,
      ...FROM_PAGE,
      summary: 'Get a new credential for the public files of a notebook',
      isPage: true,
      readsStoreOnly: true, // the request does not count as a use of the session
      handle({ principal, params: { notebookId } }) {
        const { text } = credentials.issue('public', { principal, notebookId, access: 'view' });
        return json(200, { code: text }, { ...READABLE, 'cache-control': 'no-store' });
      },
    }),
    defineRoute({
      ...OPERATIONS.sendFromNotebookPage,
      ...FROM_PAGE,
      summary: 'Carry out a POST request that the page of a notebook sends',
      ignoresKeys: true,
      audited: ({ path = '' }) => AUDITED.has(path),
      bodyLimitBytes: MAX_PAGE_BODY_BYTES,
      errors: [
        'session_closed',
        'role_too_low',
        'session_not_editable',
        'at_capacity',
        'quota_exceeded',
        'unwritable_notebook',
        'unavailable',
      ],
      handle: (request) => answer(parts, 'POST', request),
    }),
    defineRoute({
      ...OPERATIONS.getNotebookPageIcon,
      ...COMMON,
      summary: 'Read the icon of a page',
      access: 'public',
      anyOrigin: true,
      isPage: true,
      errors: ['unavailable'],
      async handle() {
        const { contentType, bytes, shared } = await frontEnd.read(frontEnd.version(), 'favicon.ico');
        return sharedDocument(contentType, bytes, shared, {
          ...READABLE,
          'cache-control': 'public, max-age=86400',
        });
      },
    }),
    defineRoute({
      ...OPERATIONS.getNotebookPageHealth,
      ...COMMON,
      summary: 'Check that the server still serves this page',
      access: 'public',
      anyOrigin: true,
      isPage: true,
      handle: () => encodedJson('{"status":"healthy"}', 200, READABLE),
    }),
  ];
}

interface FromPage extends Pick<AnyRouteRequest, 'remoteAddress' | 'requestId'> {
  readonly principal: Principal;
  readonly params: { readonly notebookId: string; readonly path: string };
  readonly headers: Readonly<Record<'marimo-session-id' | 'host' | 'x-forwarded-proto', string>>;
  readonly body: unknown;
}

/** Carries out a request of the page, in this turn unless it has to wait for something. */
function answer(
  { pages, sessions, frontEnd, publicUrl, audit }: NotebookPageRoutesOptions & BrowserRoutesContext,
  method: 'GET' | 'POST',
  request: FromPage,
) {
  const { principal, params, headers, body } = request;
  const { notebookId, path } = params;
  const pageId = headers['marimo-session-id'];
  const assetUrl = () => {
    const origin = publicUrl ?? publicOriginOf(headers.host, headers['x-forwarded-proto']);
    return origin + frontEndPath(frontEnd.version());
  };
  const note = (...changes: readonly AuditedChange[]) => {
    invariant(AUDITED.has(path), 'A request of a page that the audit notes is among the audited ones.', path);
    audit.note(auditContextOf(request), ...changes);
  };
  const sent = { principal, notebookId, path: `api/${path}`, method, pageId, body, assetUrl, note };
  const prepared = sessions.prepare(principal.workspaceId, notebookId);
  const answered = prepared === undefined ? pages.answer(sent) : prepared.then(() => pages.answer(sent));
  if (answered === 'success') return SUCCESS;
  return answered instanceof Promise ? answered.then(replyOf) : replyOf(answered);
}

/** marimo's answer to most requests of its page. */
const SUCCESS = encodedJson('{"success":true}', 200, READABLE);

function replyOf(result: PageAnswer): Reply {
  if (result === 'success') return SUCCESS;
  if ('file' in result) {
    const { format, file } = result;
    const disposition = { 'content-disposition': attachment(file.name) };
    return raw(CONTENT_TYPES[format], file.content, { ...READABLE, ...disposition });
  }
  return 'text' in result
    ? raw('text/plain; charset=utf-8', result.text, READABLE)
    : json(200, result.json, READABLE);
}
