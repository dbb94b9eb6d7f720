import type { EnvironmentFilters } from '../wire/lists.ts';
import type { Connection, PostOptions, RequestOptions } from './connection.ts';
import { operation } from './operation.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Execution environments. Each holds at most one active notebook session. */
export function executionEnvironments(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & EnvironmentFilters = {}) =>
    connection.json(operation('listExecutionEnvironments', { query, signal }));
  return {
    list,
    each: (options: PageOptions & EnvironmentFilters = {}) => eachItem(list, options),
    create: (options: PostOptions = {}) =>
      connection.json(operation('createExecutionEnvironment', { body: {}, ...options })),
    get: (environmentId: string, options: RequestOptions = {}) =>
      connection.json(operation('getExecutionEnvironment', { params: { environmentId }, ...options })),
    /** Refused while sessions are attached. */
    close: (environmentId: string, options: RequestOptions = {}) =>
      connection.json(operation('closeExecutionEnvironment', { params: { environmentId }, ...options })),
  };
}
