import type { NotebookFilters } from '../wire/lists.ts';
import type { NotebookChange, NotebookFields, NotebookFileFormat, NotebookImport } from '../wire/notebook.ts';
import type { Connection, PostOptions, RequestOptions, WriteOptions } from './connection.ts';
import { callOf, operation, pagesOf, taggedCallOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

/** Saved notebooks. */
export function notebooks(connection: Connection) {
  return {
    create: (fields: NotebookFields = {}, options: PostOptions = {}) =>
      connection.json(operation('createNotebook', { body: fields, ...options })),
    get: callOf(connection, 'getNotebook'),
    /** Resolves with the notebook and its entity tag; without the notebook when its tag is still `ifNoneMatch`. */
    getTagged: taggedCallOf(connection, 'getNotebook'),
    ...pagesOf<'listNotebooks', PageOptions & NotebookFilters>(connection, 'listNotebooks'),
    /** Rejects with `session_open` while the notebook has a session, and with `stale_update` if someone else changed it first. */
    update: (notebookId: string, change: NotebookChange, options: WriteOptions = {}) =>
      connection.json(operation('updateNotebook', { params: { notebookId }, body: change, ...options })),
    delete: callOf(connection, 'deleteNotebook'),
    /** Creates a notebook from the text of a file, or replaces the cells of one. */
    import: (file: NotebookImport, options: PostOptions = {}) =>
      connection.json(operation('importNotebook', { body: file, ...options })),
    /** Resolves with the present version and the earlier ones, newest first. */
    versions: async (notebookId: string, options: RequestOptions = {}) => {
      const { items } = await callOf(connection, 'listNotebookVersions')(notebookId, options);
      return items;
    },
    /** Resolves with the notebook as it was in the version that has this `updatedAt`. */
    version: callOf(connection, 'getNotebookVersion'),
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
      const { items } = await callOf(connection, 'listNotebookSecrets')(notebookId, options);
      return items;
    },
    /** Sets a secret variable, which the next kernel of the notebook has. It is never returned. */
    setSecret: (notebookId: string, name: string, value: string, options: RequestOptions = {}) =>
      connection.json(
        operation('setNotebookSecret', { params: { notebookId, name }, body: { value }, ...options }),
      ),
    deleteSecret: callOf(connection, 'deleteNotebookSecret'),
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
