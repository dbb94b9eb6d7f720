import type { FileEntry } from '../wire/files.ts';
import type { Connection, ReadOptions, RequestOptions, WriteOptions } from './connection.ts';
import { operation, pagesOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

type ListOptions = PageOptions & { readonly prefix?: string | undefined };

/** Options for replacing a file. */
export interface PutOptions extends WriteOptions {
  /** Whether the call is rejected with `precondition_failed` when there is a file already. */
  readonly onlyNew?: boolean | undefined;
}

/** The files of the workspace: the working directory of its notebooks. */
export function files(connection: Connection) {
  const { list, each } = pagesOf<'listFiles', ListOptions>(connection, 'listFiles');
  async function* walk(prefix: string, options: RequestOptions): AsyncGenerator<FileEntry, void, undefined> {
    for await (const entry of each({ prefix, limit: 1000, ...options })) {
      if (entry.type === 'folder') yield* walk(entry.path, options);
      else yield entry;
    }
  }
  return {
    list,
    /** Yields the files and folders whose paths begin with `prefix`, without the content of the folders. */
    each,
    /** Yields every file whose path begins with `prefix`, those in folders included. */
    walk: (prefix = '', options: RequestOptions = {}) => walk(prefix, options),
    /** Resolves with the response once its head has arrived; 304 when the caller has this state. The caller reads the body. */
    open: (
      path: string,
      options: ReadOptions & { readonly headers?: Readonly<Record<string, string>> } = {},
    ) => connection.open(operation('getFile', { params: { path }, ...options })),
    /** Resolves with the whole file. */
    get: (path: string, options: RequestOptions = {}) =>
      connection.bytes(operation('getFile', { params: { path }, ...options })),
    /** Stores a file. A stream is sent piece by piece and cannot be sent again. */
    put: (
      path: string,
      content: Uint8Array | ReadableStream<Uint8Array>,
      { onlyNew = false, ...options }: PutOptions = {},
    ) =>
      connection.json(
        operation('putFile', {
          params: { path },
          content,
          headers: { 'content-type': 'application/octet-stream' },
          ...(onlyNew ? { ifNoneMatch: '*' } : {}),
          ...options,
        }),
      ),
    /** Deletes a file; with a slash at the end of the path a folder, which must be empty. */
    delete: (path: string, options: WriteOptions = {}) =>
      connection.json(operation('deleteFile', { params: { path }, ...options })),
  };
}
