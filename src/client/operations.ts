import type { Connection, RequestOptions } from './connection.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';

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

/** Something that was done in the workspace: a change, or queries of a datasource. */
export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly userId: string;
  readonly tokenId: string;
  readonly action: string;
  readonly target: string;
  readonly outcome: 'done' | 'failed' | 'refused';
  readonly detail: string | null;
  readonly address: string;
  readonly requestId: string;
  /** Of `datasource.query`: statements of about a second that are alike. */
  readonly query?: {
    readonly by: 'notebook' | 'agent';
    readonly sessionId: string | null;
    readonly statements: number;
    readonly rows: number;
    readonly durationMs: number;
  };
}

/** What concerns the server as a whole. */
export function operations(connection: Connection) {
  const audit = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<AuditEntry>>({
      method: 'GET',
      path: '/api/v3/audit',
      query: { after, limit },
      signal,
    });
  return {
    /** A page of the audit of the workspace, for its owners. */
    audit,
    eachAudited: (options?: PageOptions) => eachItem(audit, options),
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
