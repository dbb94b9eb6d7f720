import type { Connection, RequestOptions } from './connection.ts';

/** A live actor, as an operator sees it. */
export interface LiveActor {
  readonly kind: string;
  readonly id: string;
  readonly machine: string;
  /** The state value of its statechart. */
  readonly state: unknown;
  readonly since: string;
  readonly revision: number;
  readonly lastEvents: readonly { readonly type: string; readonly at: string }[];
}

/** What concerns the server as a whole. */
export function operations(connection: Connection) {
  return {
    /** Environments, sessions and runs of the workspace that are in memory. */
    actors: (options: RequestOptions = {}) =>
      connection.json<{ readonly items: readonly LiveActor[] }>({
        method: 'GET',
        path: '/api/v3/actors',
        ...options,
      }),
    openapi: (options: RequestOptions = {}) =>
      connection.json<Readonly<Record<string, unknown>>>({
        method: 'GET',
        path: '/api/v3/openapi.json',
        ...options,
      }),
    health: (options: RequestOptions = {}) =>
      connection.json<{ readonly status: 'ok' }>({ method: 'GET', path: '/healthz', ...options }),
    /** Rejects with the status 503 while the server starts or drains. */
    readiness: (options: RequestOptions = {}) =>
      connection.json<{ readonly ready: boolean; readonly reason?: string }>({
        method: 'GET',
        path: '/readyz',
        ...options,
      }),
  };
}
