import type { EventTicket } from '#src/wire/event-ticket.ts';
import type { NotebookStreamEvent } from '#src/wire/events.ts';
import type { NotebookSessionFilters, NotebookSessionSummary } from '#src/wire/finding.ts';
import type { NotebookSession, OpenNotebookSession, Startup } from '#src/wire/session.ts';
import type { Page } from '#src/wire/shape.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Hears what the start of a kernel waits for. */
type StartupListener = (startup: Startup) => void;

/** Notebook sessions: notebooks that are open, with a kernel. */
export function notebookSessions(connection: Connection) {
  const get = (sessionId: string, options: RequestOptions = {}) =>
    connection.json<NotebookSession>({
      method: 'GET',
      path: path`/api/v3/notebook-sessions/${sessionId}`,
      ...options,
    });
  const follow = (sessionId: string, options: FollowOptions = {}) =>
    followEvents<NotebookStreamEvent>(
      connection,
      path`/api/v3/notebook-sessions/${sessionId}/events`,
      options,
    );
  const list = ({ signal, ...query }: PageOptions & NotebookSessionFilters = {}) =>
    connection.json<Page<NotebookSessionSummary>>({
      method: 'GET',
      path: '/api/v3/notebook-sessions',
      query,
      signal,
    });
  return {
    /** Resolves with a page of the workspace's sessions, by the time at which they were opened. Starts no kernel. */
    list,
    each: (options: PageOptions & NotebookSessionFilters = {}) => eachItem(list, options),
    /** Resolves while the session starts; `waitUntilReady` waits until it is ready. */
    open: (request: OpenNotebookSession, options: PostOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'POST',
        path: '/api/v3/notebook-sessions',
        body: request,
        ...options,
      }),
    get,
    /** Puts the session to sleep: its kernel ends. */
    hibernate: (sessionId: string, options: PostOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'POST',
        path: path`/api/v3/notebook-sessions/${sessionId}/hibernate`,
        ...options,
      }),
    /** Starts the kernel of a session that sleeps. */
    wake: (sessionId: string, options: PostOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'POST',
        path: path`/api/v3/notebook-sessions/${sessionId}/wake`,
        ...options,
      }),
    /** Resolves with the closed session once its kernel is gone. */
    close: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'DELETE',
        path: path`/api/v3/notebook-sessions/${sessionId}`,
        ...options,
      }),
    /** Returns a ticket with which a browser's `EventSource` opens the session's stream, once. */
    eventTicket: (sessionId: string, options: PostOptions = {}) =>
      connection.json<EventTicket>({
        method: 'POST',
        path: path`/api/v3/notebook-sessions/${sessionId}/event-tickets`,
        ...options,
      }),
    /** Yields the current state as events and then live events, across reconnects, until the session closes. */
    follow,
    /** Resolves with the session as soon as it is `ready`, `failed` or `closed`; `startup` hears what it waits for until then. */
    async waitUntilReady(
      sessionId: string,
      { startup, ...options }: RequestOptions & { readonly startup?: StartupListener } = {},
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
        if (status === 'ready' || status === 'failed') break;
      }
      return get(sessionId, options);
    },
  };
}
