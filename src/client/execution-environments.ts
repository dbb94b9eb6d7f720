import type { EnvironmentFilters } from '#src/wire/finding.ts';
import type { Environment } from '#src/wire/session.ts';
import type { Page } from '#src/wire/shape.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Execution environments. Each holds at most one active notebook session. */
export function executionEnvironments(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & EnvironmentFilters = {}) =>
    connection.json<Page<Environment>>({
      method: 'GET',
      path: '/api/v3/execution-environments',
      query,
      signal,
    });
  return {
    list,
    each: (options: PageOptions & EnvironmentFilters = {}) => eachItem(list, options),
    create: (options: PostOptions = {}) =>
      connection.json<Environment>({
        method: 'POST',
        path: '/api/v3/execution-environments',
        body: {},
        ...options,
      }),
    get: (environmentId: string, options: RequestOptions = {}) =>
      connection.json<Environment>({
        method: 'GET',
        path: path`/api/v3/execution-environments/${environmentId}`,
        ...options,
      }),
    /** Refused while sessions are attached. */
    close: (environmentId: string, options: RequestOptions = {}) =>
      connection.json<Environment>({
        method: 'DELETE',
        path: path`/api/v3/execution-environments/${environmentId}`,
        ...options,
      }),
  };
}
