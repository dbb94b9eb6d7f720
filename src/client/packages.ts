import type { AddedPackages, WorkspacePackageList } from '#src/wire/packages.ts';
import {
  type Connection,
  type PostOptions,
  path,
  type RequestOptions,
  type WaitOptions,
} from './connection.ts';

const PACKAGES = '/api/v3/packages';

/** The packages that all notebooks of the workspace have. */
export function packages(connection: Connection) {
  return {
    /** Resolves with all packages, and what is being installed. */
    list: (options: RequestOptions = {}) =>
      connection.json<WorkspacePackageList>({ method: 'GET', path: PACKAGES, ...options }),
    /** Resolves with the list while the installation goes on, when it takes longer than `wait`. */
    add: (requirements: readonly string[], { wait, ...options }: PostOptions & WaitOptions = {}) =>
      connection.json<AddedPackages | WorkspacePackageList>({
        method: 'POST',
        path: PACKAGES,
        query: { wait },
        body: { requirements },
        ...options,
      }),
    remove: (name: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/packages/${name}`, ...options }),
  };
}
