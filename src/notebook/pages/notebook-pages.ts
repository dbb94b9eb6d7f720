import { unawaited } from '#src/base/async/unawaited.ts';
import { allows } from '#src/base/caller/page-access.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import type { AuditedChange } from '#src/people/audit/audit-trail.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';
import { maxElementFileBytes } from '#src/workspace/files/element-files.ts';
import { memberRecords } from '#storage/records/identity.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { Executions } from '../requests/executions.ts';
import type { NotebookRequestContext } from '../requests/request-context.ts';
import type { SessionInterruptions } from '../requests/session-interruption.ts';
import { titleOf } from '../saved/document.ts';
import type { ExportRequest, NotebookFiles } from '../saved/notebook-files.ts';
import { notebookStatusOf } from '../sessions/notebook-session-record.ts';
import { elementWork } from '../work/element-work.ts';
import type { Installed } from './front-end-files.ts';
import { sentenceOfEnd } from './kernel-ends.ts';
import { type PageDocument, type PageOptions, pageDocument } from './page-html.ts';
import { PageHub, type PageHubPorts } from './page-hub.ts';
import { PAGE_REQUESTS, type PageAnswer } from './page-requests.ts';
import type { PageStreams } from './page-stream.ts';

export interface NotebookPagesOptions {
  readonly executions: Executions;
  readonly interruptions: SessionInterruptions;
  readonly files: NotebookFiles;
  readonly streams: PageStreams;
  readonly installed: () => Installed | undefined;
}

/** A request of a page, whose caller is known. */
export interface FrontEndRequest {
  readonly principal: Principal;
  readonly notebookId: string;
  /** The path below the address of the page, such as `api/kernel/run`. */
  readonly path: string;
  readonly method: 'GET' | 'POST';
  /** The id that the page has given itself. */
  readonly pageId: string;
  readonly body: unknown;
  /** Returns the address at which an exported HTML page finds marimo's front end. */
  readonly assetUrl: () => string;
  /** Notes changes in the audit. */
  readonly note: (...changes: readonly AuditedChange[]) => void;
}

/** The pages of notebooks in browsers: marimo's front end on live sessions. */
export class NotebookPages {
  readonly #context: NotebookRequestContext;
  readonly #options: NotebookPagesOptions;

  constructor(context: NotebookRequestContext, options: NotebookPagesOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Resolves with the document of a page. Rejects with `not_found` and `session_closed`. */
  async html(
    principal: Principal,
    notebookId: string,
    where: Pick<PageOptions, 'address' | 'origin' | 'pageToken' | 'publicCode'>,
  ): Promise<PageDocument> {
    const { sessions, config } = this.#context;
    const { workspaceId } = principal;
    const marimo = this.#options.installed();
    if (marimo === undefined) throw new AppError('unavailable', 'The kernel host has not started yet.');
    await sessions.prepare(workspaceId, notebookId);
    const { live, mode } = this.#use(workspaceId, notebookId);
    const { serialization } = live.document;
    return pageDocument({
      ...where,
      hosts: config.pageHosts,
      maxElementFileBytes: maxElementFileBytes(config),
      title: titleOf(serialization) ?? 'notebook',
      access: principal.pageAccess ?? 'view',
      isApp: mode === 'run',
      appOptions: serialization.app.options,
      installed: marimo,
    });
  }

  /** Returns a function that attaches a page. Throws `not_found` and `session_closed`. */
  follow(principal: Principal, notebookId: string, pageId: string): (sink: EventSink) => Subscription {
    const { workspaceId, userId, pageAccess = 'view' } = principal;
    const { session, mode } = this.#use(workspaceId, notebookId);
    return (sink) => this.#hubOf(session).attach({ pageId, userId }, pageAccess, mode, sink);
  }

  /** Returns a function that begins a stream of the people and the agent in a notebook. Throws `not_found` and `session_closed`. */
  followPresence(principal: Principal, notebookId: string): (sink: EventSink) => Subscription {
    const { workspaceId, userId, pageAccess: access = 'view' } = principal;
    const { session } = this.#use(workspaceId, notebookId);
    return (sink) => this.#hubOf(session).followPresence({ workspaceId, userId, access }, sink);
  }

  /**
   * Carries out a request of a page. Throws `not_found` for a request that Troupe does not support,
   * `role_too_low` when the access of the page is not sufficient, `session_not_editable` for a
   * change of a notebook that its session runs as an app, and `invalid_request`.
   */
  answer(request: FrontEndRequest): PageAnswer | Promise<PageAnswer> {
    const { principal, notebookId, path, method, pageId, body, assetUrl, note } = request;
    const { workspaceId, userId, pageAccess = 'view' } = principal;
    const operation = PAGE_REQUESTS.get(path);
    if (operation?.method !== method) throw notFound();
    const { sessions, secrets, elementFiles } = this.#context;
    const { files } = this.#options;
    if (!allows(pageAccess, operation.access)) {
      if (sessions.isClosed(workspaceId, notebookId)) throw sessionIsClosed();
      throw new AppError('role_too_low', 'This page may only show the notebook, not change it.');
    }
    const { session, live, mode } = this.#use(workspaceId, notebookId); // wakes the session, so the right is checked before
    if (operation.access === 'edit' && mode === 'run')
      throw new AppError('session_not_editable', 'The session runs this notebook as an app.');
    const context = {
      hub: this.#hubOf(session, live),
      live,
      caller: { pageId, userId },
      secrets: {
        names: () => secrets.list(workspaceId, notebookId).map(({ name }) => name),
        set(name: string, value: string) {
          secrets.set(workspaceId, notebookId, { name, value, userId });
          note({ action: 'notebook-secret.set', target: notebookId, detail: name, outcome: 'done' });
        },
      },
      restart() {
        sessions.hibernate(workspaceId, notebookId);
        note({ action: 'session.restart', target: notebookId, outcome: 'done' });
      },
      async close() {
        await sessions.close(workspaceId, notebookId, userId);
        note({ action: 'session.close', target: notebookId, outcome: 'done' });
      },
      async duplicate(title: string | null) {
        const id = await files.duplicate(workspaceId, notebookId, title, userId);
        note({ action: 'notebook.copy-settings', target: notebookId, outcome: 'done' });
        return id;
      },
      snippets: () => files.snippets(workspaceId),
      discardFiles: (ids: readonly string[]) =>
        elementFiles.remove({ workspaceId, sessionId: notebookId }, ids),
      exportAs: (request: Omit<ExportRequest, 'assetUrl'>) =>
        files.export(workspaceId, notebookId, {
          ...request,
          assetUrl: request.format === 'html' ? assetUrl() : undefined,
        }),
    };
    try {
      const answered = operation.handle(context, Object(body) as Readonly<Record<string, unknown>>);
      return answered instanceof Promise ? answered.catch(throwInvalid) : answered;
    } catch (error) {
      return throwInvalid(error);
    }
  }

  /** Returns the session of a notebook with its open notebook, and wakes it. Throws `session_closed`, and the errors of `ensureAwake`. */
  #use(workspaceId: WorkspaceId, notebookId: string) {
    const { sessions, liveNotebooks } = this.#context;
    const { session, isClosed, mode, live } = sessions.use(workspaceId, notebookId);
    if (isClosed) throw sessionIsClosed();
    return { session, mode, live: live ?? liveNotebooks.of(session) };
  }

  #hubOf(session: ActorId, live = this.#context.liveNotebooks.of(session)): PageHub {
    if (live.follower instanceof PageHub) return live.follower;
    const { actors, agents } = this.#context;
    const { workspaceId, id } = session;
    const watches = [
      actors.watch(session, () => hub.wake()),
      agents().watchNotebook(workspaceId, id, () => hub.agentChanged()),
    ];
    const hub: PageHub = new PageHub(live, this.#portsOf(session), () => {
      for (const stop of watches) stop();
    });
    return hub;
  }

  #portsOf(session: ActorId): PageHubPorts {
    const { config, store, sessions, actors, work, liveNotebooks, log } = this.#context;
    const { agents, elementFiles, packages } = this.#context;
    const { executions, interruptions, streams } = this.#options;
    const { workspaceId, id } = session;
    return {
      ...streams,
      submit: (userId, cells) =>
        executions.submit(
          { workspaceId, userId: userId as Principal['userId'] },
          id,
          cells === 'all'
            ? { type: 'all', structuralErrors: 'skip' }
            : { type: 'cells', cells: [...cells], structuralErrors: 'skip' },
          { leavesNotebook: true },
        ),
      element: (by, command) =>
        work.call<void>(session, { kind: 'element', by, edits: false }, (_, resolve) =>
          elementWork({ command, live: liveNotebooks.of(session), store, resolve: () => resolve() }),
        ),
      interrupt: () => interruptions.interrupt(workspaceId, id),
      hasPackage: (name) => packages.has(workspaceId, name),
      discardFiles: (ids) =>
        unawaited(
          elementFiles.remove({ workspaceId, sessionId: id }, ids).catch((error: unknown) => {
            if (!(error instanceof AppError)) throw error; // too many wait, and the files stay until the kernel ends
          }),
          'notebook-pages: the removal of files that no value names',
        ),
      isClosed: () => sessions.isClosed(workspaceId, id),
      nameOf: (userId) => store.get(memberRecords, workspaceId, userId)?.name ?? userId,
      agent: () => agents().ofNotebook(workspaceId, id),
      state() {
        const peek = actors.peek(session);
        const live = liveNotebooks.of(session);
        const title = titleOf(live.document.serialization);
        const end = peek?.snapshot.context.kernelEnd ?? null;
        return {
          title,
          status: peek === undefined ? 'closed' : notebookStatusOf(peek),
          kernelEnd: end === null || hasRun(live) ? null : sentenceOfEnd(end, config.idleTimeoutS),
        };
      },
      describe(error) {
        if (error instanceof AppError) return { title: 'Not carried out', description: error.message };
        log.error({ err: error, sessionId: id }, 'a request of a page failed');
        return {
          title: 'Not carried out',
          description: 'The server could not do it. Its log has the reason.',
        };
      },
    };
  }
}

function sessionIsClosed(): AppError {
  return new AppError('session_closed', 'The session of this notebook is closed. Open it again first.');
}

/** Returns whether a cell has run in the present kernel. */
function hasRun({ view }: LiveNotebook): boolean {
  return view.cells.some(({ ran }) => ran !== null);
}

/** Throws an error of a request's shape as `invalid_request`, and every other one as it is. */
function throwInvalid(error: unknown): never {
  throw error instanceof ShapeError ? new AppError('invalid_request', error.message) : error;
}
