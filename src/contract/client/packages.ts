import type { Connection, PostOptions, RequestOptions, WaitOptions } from './connection.ts';
import { operation } from './operation.ts';

/** The packages that all notebooks of the workspace have. */
export function packages(connection: Connection) {
  return {
    /** Resolves with all packages, and the installation in progress. */
    list: (options: RequestOptions = {}) => connection.json(operation('listPackages', options)),
    /** Resolves with the list while the installation continues, when it takes longer than `wait`. */
    add: (requirements: readonly string[], { wait, ...options }: PostOptions & WaitOptions = {}) =>
      connection.json(operation('addPackages', { query: { wait }, body: { requirements }, ...options })),
    remove: (name: string, options: RequestOptions = {}) =>
      connection.json(operation('removePackage', { params: { name }, ...options })),
  };
}
