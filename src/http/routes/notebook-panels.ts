import { AppError } from '#src/base/errors/errors.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { NotebookPanels } from '#src/notebook/pages/notebook-panels.ts';
import type { PanelRequest } from '#src/notebook/pages/panel.ts';
import { readForm } from '../edge/form-body.ts';
import { auditContextOf } from '../handlers/audited-routes.ts';
import { attachment } from '../reply/content-headers.ts';
import { fileReply } from '../reply/content-reply.ts';
import { encodedJson, noContent } from '../reply/reply.ts';
import { type AnyRouteRequest, defineRoute, type Route } from '../route.ts';
import { fileContent, safeHeaders } from './files.ts';
import { COMMON, FROM_PAGE, READABLE } from './notebook-pages.ts';

/**
 * The common part of requests about the workspace of a notebook. The home of the workspace carries them out, not the home of the
 * notebook.
 */
const OF_PANEL = {
  ...FROM_PAGE,
  home: 'workspace',
  audited: true,
  errors: ['session_closed', 'role_too_low', 'session_not_editable'],
} as const;

/** Requests for a file of the folder `public`. */
const PUBLIC_FILE = {
  ...COMMON,
  access: { action: 'session.read' },
  isPage: true,
  readsStoreOnly: true,
  errors: ['session_closed', 'not_a_file', 'file_inaccessible', 'range_not_satisfiable', 'stale_update'],
} as const;

/** The most bytes of the form's fields around a file. */
const MAX_FORM_BYTES = 64 * 1024;
/** The most bytes of the JSON with the new text of a file. */
const MAX_EDITED_BYTES = 4 * 1024 * 1024;

/** The sizes of the largest files that pages may store in the workspace, and send to an element. */
interface FileLimits {
  readonly maxFileBytes: number;
  readonly maxElementFileBytes: number;
}

/** The panels of the page of a notebook that are about its workspace. */
export function notebookPanelRoutes(
  panels: NotebookPanels,
  { maxFileBytes, maxElementFileBytes }: FileLimits,
): readonly Route[] {
  return [
    // The value of the element then names the file by its id, so that no JSON contains the bytes of a file.
    defineRoute({
      ...OPERATIONS.uploadToElement,
      ...OF_PANEL,
      summary: 'Send a file to an element of a notebook, such as `mo.ui.file`',
      ignoresKeys: true,
      bodyLimitBytes: maxElementFileBytes,
      errors: [
        'session_closed',
        'role_too_low',
        'body_too_large',
        'file_quota_exceeded',
        'not_a_file',
        'file_inaccessible',
        'stale_update',
        'unavailable',
      ],
      async handle(request) {
        const { params, signal, content } = request;
        const asked = { context: auditContextOf(request), notebookId: params.notebookId, signal };
        return shown({ id: await panels.storeElementFile(asked, content) });
      },
    }),
    defineRoute({
      ...OPERATIONS.readFilesFromNotebookPage,
      ...OF_PANEL,
      summary: 'Show the files of the workspace on the page of a notebook',
      isPage: true,
      handle: async (request) =>
        shown(await panels.files(panelRequest('GET', 'files', { ...request, body: undefined }))),
    }),
    defineRoute({
      ...OPERATIONS.downloadFromNotebookPage,
      ...FROM_PAGE,
      summary: 'Download a file of the workspace on the page of a notebook',
      isPage: true,
      readsStoreOnly: true,
      errors: ['session_closed', 'not_a_file', 'file_inaccessible', 'range_not_satisfiable', 'stale_update'],
      // A browser that follows a link to this address sends no token in a header. Without content, the browser stays on its page.
      // An error would replace the notebook.
      handleStranger: () => noContent(),
      async handle(request) {
        const { params, query, signal, headers, headOnly } = request;
        const asked = { context: auditContextOf(request), notebookId: params.notebookId, signal };
        const { name, file } = await panels.download(asked, query.path);
        const disposition = { 'content-disposition': attachment(name), 'cache-control': 'no-store' };
        const described = { ...fileContent(file, name), headers: { ...READABLE, ...disposition } };
        return fileReply(described, headers, headOnly);
      },
    }),
    // Outputs refer to these files by a relative address, such as `public/logo.png`; the page completes it (page-public-files.ts).
    defineRoute({
      ...OPERATIONS.getPublicFile,
      ...PUBLIC_FILE,
      credential: 'public',
      anyOrigin: true,
      summary: 'Read a file that stands in the folder `public` beside a notebook',
      async handle(request) {
        const { params, signal, headers, headOnly } = request;
        const asked = { context: auditContextOf(request), notebookId: params.notebookId, signal };
        const [, ...names] = params.code.split('/'); // the credential is before the first slash
        const { name, file } = await panels.publicFile(asked, names.join('/'));
        const own = { ...READABLE, ...safeHeaders(name), 'referrer-policy': 'no-referrer' };
        return fileReply({ ...fileContent(file, name), headers: own }, headers, headOnly);
      },
    }),
    // The relative address to which a link in an output leads. People copy such addresses, so they contain no credential. The
    // browser sends the cookie of the page, and a browser without the cookie is redirected to the notebook.
    defineRoute({
      ...OPERATIONS.getLinkedPublicFile,
      ...PUBLIC_FILE,
      credential: 'cookie',
      summary: 'Read a file to which an output of a notebook links',
      handleStranger({ headers, params }) {
        if (!headers.accept.includes('text/html'))
          throw new AppError('unauthenticated', 'Open the notebook in this browser first.');
        const location = pathOf('getNotebookPage', { notebookId: params.notebookId });
        return { kind: 'empty', status: 303, headers: { location } };
      },
      async handle(request) {
        const { params, signal, headers, headOnly } = request;
        const asked = { context: auditContextOf(request), notebookId: params.notebookId, signal };
        const { name, file } = await panels.publicFile(asked, params.path);
        const own = { ...safeHeaders(name), 'referrer-policy': 'no-referrer' };
        return fileReply({ ...fileContent(file, name), headers: own }, headers, headOnly);
      },
    }),
    defineRoute({
      ...OPERATIONS.uploadFromNotebookPage,
      ...OF_PANEL,
      summary: 'Create a file or a folder of the workspace on the page of a notebook',
      ignoresKeys: true,
      bodyLimitBytes: maxFileBytes + MAX_FORM_BYTES,
      errors: [...OF_PANEL.errors, 'unsupported_media_type', 'body_too_large'],
      async handle(request) {
        const { params, signal, content, headers } = request;
        const asked = { context: auditContextOf(request), notebookId: params.notebookId, signal };
        const created = await panels.createFile(asked, async () => {
          const { fields, file } = await readForm(content, headers['content-type']);
          const [path, type, name] = ['path', 'type', 'name'].map((field) => fields.get(field));
          return { path, type, name, content: file };
        });
        return shown(created);
      },
    }),
    defineRoute({
      ...OPERATIONS.changeFilesFromNotebookPage,
      ...OF_PANEL,
      summary: 'Show or change files of the workspace on the page of a notebook',
      ignoresKeys: true,
      bodyLimitBytes: Math.min(maxFileBytes, MAX_EDITED_BYTES),
      errors: [...OF_PANEL.errors, 'not_a_file', 'file_inaccessible', 'unavailable'],
      handle: async (request) => shown(await panels.files(panelRequest('POST', 'files', request))),
    }),
    defineRoute({
      ...OPERATIONS.readPackagesFromNotebookPage,
      ...OF_PANEL,
      summary: 'Show the packages of the workspace on the page of a notebook',
      isPage: true,
      handle: async (request) =>
        shown(await panels.packages(panelRequest('GET', 'packages', { ...request, body: undefined }))),
    }),
    defineRoute({
      ...OPERATIONS.changePackagesFromNotebookPage,
      ...OF_PANEL,
      summary: 'Add or remove packages of the workspace on the page of a notebook',
      ignoresKeys: true,
      handle: async (request) => shown(await panels.packages(panelRequest('POST', 'packages', request))),
    }),
  ];
}

type FromPanel = Pick<AnyRouteRequest, 'remoteAddress' | 'requestId' | 'body' | 'signal'> &
  Pick<Parameters<typeof auditContextOf>[0], 'principal'> & {
    readonly params: { readonly notebookId: string; readonly path: string };
  };

function panelRequest(method: 'GET' | 'POST', panel: string, request: FromPanel): PanelRequest {
  const { params, body, signal } = request;
  const { notebookId, path } = params;
  return {
    context: auditContextOf(request),
    notebookId,
    method,
    path: `api/${panel}/${path}`,
    body,
    signal,
  };
}

function shown(value: unknown) {
  return encodedJson(JSON.stringify(value), 200, READABLE);
}
