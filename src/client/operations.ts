import type { AuditEntry } from '#src/wire/audit.ts';
import type { ActorList, Health, Readiness } from '#src/wire/operations.ts';
import type { Page } from '#src/wire/shape.ts';
import type { Connection, RequestOptions } from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** The server as a whole. */
export function operations(connection: Connection) {
  const audit = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<AuditEntry>>({
      method: 'GET',
      path: '/api/v3/audit',
      query: { after, limit },
      signal,
    });
  return {
    /** Resolves with a page of the workspace's audit entries. Only owners may read them. */
    audit,
    eachAudited: (options?: PageOptions) => eachItem(audit, options),
    /** Resolves with the environments, sessions and runs of the workspace that are in memory. */
    actors: (options: RequestOptions = {}) =>
      connection.json<ActorList>({
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
      connection.json<Health>({ method: 'GET', path: '/healthz', ...options }),
    /** Rejects with the status 503 while the server starts or drains. */
    readiness: (options: RequestOptions = {}) =>
      connection.json<Readiness>({
        method: 'GET',
        path: '/readyz',
        ...options,
      }),
  };
}
