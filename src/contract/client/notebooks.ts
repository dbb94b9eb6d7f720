import type { NotebookFilters } from '../wire/lists.ts';
import type { NotebookChange, NotebookFields, NotebookFileFormat, NotebookImport } from '../wire/notebook.ts';
import type { Connection, PostOptions, ReadOptions, RequestOptions, WriteOptions } from './connection.ts';
import { operation } from './operation.ts';
import { eachItem, type PageOptions } from './paging.ts';

/** Saved notebooks. */
export function notebooks(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & NotebookFilters = {}) =>
    connection.json(operation('listNotebooks', { query, signal }));
  return {
    create: (fields: NotebookFields = {}, options: PostOptions = {}) =>
      connection.json(operation('createNotebook', { body: fields, ...options })),
    get: (notebookId: string, options: RequestOptions = {}) =>
      connection.json(operation('getNotebook', { params: { notebookId }, ...options })),
    /** Resolves with the notebook and its entity tag; without the notebook when its tag is still `ifNoneMatch`. */
    getTagged: (notebookId: string, options: ReadOptions = {}) =>
      connection.tagged(operation('getNotebook', { params: { notebookId }, ...options })),
    list,
    each: (options: PageOptions & NotebookFilters = {}) => eachItem(list, options),
    /** Rejects with `session_open` while the notebook has a session, and with `stale_update` if someone else changed it first. */
    update: (notebookId: string, change: NotebookChange, options: WriteOptions = {}) =>
      connection.json(operation('updateNotebook', { params: { notebookId }, body: change, ...options })),
    delete: (notebookId: string, options: WriteOptions = {}) =>
      connection.json(operation('deleteNotebook', { params: { notebookId }, ...options })),
    /** Creates a notebook from the text of a file, or replaces the cells of one. */
    import: (file: NotebookImport, options: PostOptions = {}) =>
      connection.json(operation('importNotebook', { body: file, ...options })),
    /** Resolves with the present version and the earlier ones, newest first. */
    versions: async (notebookId: string, options: RequestOptions = {}) => {
      const list = await connection.json(
        operation('listNotebookVersions', { params: { notebookId }, ...options }),
      );
      return list.items;
    },
    /** Resolves with the notebook as it was in the version that has this `updatedAt`. */
    version: (notebookId: string, version: string, options: RequestOptions = {}) =>
      connection.json(operation('getNotebookVersion', { params: { notebookId, version }, ...options })),
    /** Gives the notebook the content of an earlier version; its present state becomes a version. Rejects as `update` does. */
    restore: (
      notebookId: string,
      version: string,
      { expectedUpdatedAt, ...options }: PostOptions & { readonly expectedUpdatedAt: string },
    ) =>
      connection.json(
        operation('restoreNotebookVersion', {
          params: { notebookId, version },
          body: { expectedUpdatedAt },
          ...options,
        }),
      ),
    /** Resolves with the names of the secret variables. */
    secrets: async (notebookId: string, options: RequestOptions = {}) => {
      const list = await connection.json(
        operation('listNotebookSecrets', { params: { notebookId }, ...options }),
      );
      return list.items;
    },
    /** Sets a secret variable, which the next kernel of the notebook has. It is never returned. */
    setSecret: (notebookId: string, name: string, value: string, options: RequestOptions = {}) =>
      connection.json(
        operation('setNotebookSecret', { params: { notebookId, name }, body: { value }, ...options }),
      ),
    deleteSecret: (notebookId: string, name: string, options: RequestOptions = {}) =>
      connection.json(operation('deleteNotebookSecret', { params: { notebookId, name }, ...options })),
    /** Resolves with the file. An `html` page loads its front end from the server, or from a public CDN with `cdn`. */
    export: (
      notebookId: string,
      format: NotebookFileFormat | 'html',
      { frontEnd, ...options }: RequestOptions & { readonly frontEnd?: 'server' | 'cdn' | undefined } = {},
    ) =>
      connection.bytes(
        operation('exportNotebook', { params: { notebookId }, query: { format, frontEnd }, ...options }),
      ),
  };
}
