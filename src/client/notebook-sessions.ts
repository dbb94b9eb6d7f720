import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { type FollowOptions, followEvents } from './event-stream.ts';
import type { NotebookStreamEvent } from './events.ts';
import type { Failure } from './runs.ts';

export type SessionStatus = 'starting' | 'ready' | 'busy' | 'restoring' | 'failed' | 'closing' | 'closed';
export type CellStatus = 'idle' | 'queued' | 'running' | 'stale' | 'disabled' | 'error';

export interface NotebookSession {
  /** The id of its notebook. */
  readonly sessionId: string;
  readonly notebookId: string;
  readonly environmentId: string | null;
  readonly mode: 'edit' | 'run';
  readonly status: SessionStatus;
  /** Milliseconds of each step of the last kernel start. */
  readonly phases: Readonly<Record<string, number>>;
  readonly currentRunId: string | null;
  readonly cells: readonly {
    readonly cellId: string;
    readonly name: string;
    readonly status: CellStatus;
    readonly stale: boolean;
  }[];
  readonly kernel: Readonly<Record<string, unknown>> | null;
  readonly error: Failure | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface OpenNotebookSession {
  readonly notebookId: string;
  readonly environmentId: string;
  /** `edit` unless said otherwise. */
  readonly mode?: 'edit' | 'run';
}

/** Notebooks that are open with a kernel. */
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
  return {
    /** Answers while the session starts; `waitUntilReady` tells when it is. */
    open: (request: OpenNotebookSession, options: PostOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'POST',
        path: '/api/v3/notebook-sessions',
        body: request,
        ...options,
      }),
    get,
    /** Resolves with the final record once the kernel is gone. */
    close: (sessionId: string, options: RequestOptions = {}) =>
      connection.json<NotebookSession>({
        method: 'DELETE',
        path: path`/api/v3/notebook-sessions/${sessionId}`,
        ...options,
      }),
    /** Its events: the current state, then what happens, across reconnects, until it closes. */
    follow,
    /** Resolves with the record as soon as the session is `ready`, `failed` or `closed`. */
    async waitUntilReady(sessionId: string, options: RequestOptions = {}): Promise<NotebookSession> {
      for await (const event of follow(sessionId, options)) {
        const status =
          event.type === 'session.status' || event.type === 'session.snapshot' ? event.data.status : '';
        if (status === 'ready' || status === 'failed') break;
      }
      return get(sessionId, options);
    },
  };
}
