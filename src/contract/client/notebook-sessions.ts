import type { ChangeCells } from '../wire/cell-changes.ts';
import type { NotebookStreamEvent } from '../wire/events.ts';
import type { CallFunction, CompleteCode, SetUiValues } from '../wire/interaction.ts';
import type { NotebookSessionFilters } from '../wire/lists.ts';
import { pathOf } from '../wire/paths.ts';
import type { NotebookSession, OpenBrowserPage, OpenNotebookSession, Startup } from '../wire/session.ts';
import type { Connection, PostOptions, RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { bytesCallOf, callOf, operation, pagesOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

/** Is called with the step for which the start of a kernel waits. */
type StartupListener = (startup: Startup) => void;

/** Notebook sessions: notebooks that are open, with a kernel. */
export function notebookSessions(connection: Connection) {
  const get = callOf(connection, 'getNotebookSession');
  const follow = (sessionId: string, options: FollowOptions = {}) =>
    followEvents<NotebookStreamEvent>(connection, pathOf('followNotebookSession', { sessionId }), options);
  const { list, each } = pagesOf<'listNotebookSessions', PageOptions & NotebookSessionFilters>(
    connection,
    'listNotebookSessions',
  );
  return {
    /** Resolves with a page of the workspace's sessions, by the time at which they were opened. Starts no kernel. */
    list,
    each,
    /** Resolves while the session starts; `waitUntilReady` waits until it is ready. */
    open: (request: OpenNotebookSession, options: PostOptions = {}) =>
      connection.json(operation('openNotebookSession', { body: request, ...options })),
    get,
    /** Puts the session to sleep: its kernel ends. */
    hibernate: callOf(connection, 'hibernateNotebookSession'),
    /** Ends the run or the code call that keeps the session busy. Resolves when that has begun, or when nothing runs. */
    interrupt: callOf(connection, 'interruptNotebookSession'),
    /** Starts the kernel of a session that sleeps. */
    wake: callOf(connection, 'wakeNotebookSession'),
    /** Returns the address of a page in a browser that shows the session. It works once, within a minute, in your name. */
    page: (sessionId: string, body: OpenBrowserPage = {}, options: PostOptions = {}) =>
      connection.json(operation('createNotebookPage', { params: { sessionId }, body, ...options })),
    /** Changes cells, also while the session is busy: all changes, or none. Nothing runs. */
    change: (sessionId: string, body: ChangeCells, options: PostOptions = {}) =>
      connection.json(operation('changeCells', { params: { sessionId }, body, ...options })),
    /** Sets values of UI elements. Resolves when the cells that depend on them have run. */
    setUiValues: (sessionId: string, body: SetUiValues, options: PostOptions = {}) =>
      connection.json(operation('setUiValues', { params: { sessionId }, body, ...options })),
    /**
     * Calls a function of a UI element. Resolves even when the function fails: check `success`. Aborting `signal` interrupts the
     * function.
     */
    callFunction: (sessionId: string, body: CallFunction, options: PostOptions = {}) =>
      connection.json(
        operation('callFunction', { params: { sessionId }, body, ...options, endsWithConnection: true }),
      ),
    /** Completes code. */
    complete: (sessionId: string, body: CompleteCode, options: PostOptions = {}) =>
      connection.json(operation('completeCode', { params: { sessionId }, body, ...options })),
    /** Resolves with the closed session once its kernel is gone. */
    close: callOf(connection, 'closeNotebookSession'),
    /** Returns a ticket with which a browser's `EventSource` opens the session's stream, once. */
    eventTicket: callOf(connection, 'createNotebookEventTicket'),
    /** Resolves with a large output that an event names. Rejects with `not_found` when the notebook no longer shows it. */
    asset: bytesCallOf(connection, 'getNotebookSessionAsset'),
    /** Yields the current state as events and then live events, across reconnects, until the session closes. */
    follow,
    /**
     * Resolves with the session as soon as it is `ready`, `failed` or `closed`, with `orBusy` also when its kernel is at work; until
     * then, `startup` is called with the step for which it waits.
     */
    async waitUntilReady(
      sessionId: string,
      {
        startup,
        orBusy,
        ...options
      }: RequestOptions & { readonly startup?: StartupListener | undefined; readonly orBusy?: boolean } = {},
    ): Promise<NotebookSession> {
      let told: Startup | null = null;
      const tell = (now: Startup | null) => {
        if (now !== null && now.text !== told?.text) startup?.(now);
        told = now;
      };
      for await (const event of follow(sessionId, options)) {
        if (event.type === 'session.startup') tell(event.data);
        else if (event.type === 'session.snapshot') tell(event.data.startup);
        const status =
          event.type === 'session.status' || event.type === 'session.snapshot' ? event.data.status : '';
        if (status === 'ready' || status === 'failed' || (orBusy && status === 'busy')) break;
      }
      return get(sessionId, options);
    },
  };
}
