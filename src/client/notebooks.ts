import type { NotebookFilters } from '#src/wire/finding.ts';
import type {
  Notebook,
  NotebookChange,
  NotebookFields,
  NotebookFileFormat,
  NotebookImport,
  NotebookSecret,
  NotebookSummary,
} from '#src/wire/notebook.ts';
import type { Page } from '#src/wire/shape.ts';
import {
  type Connection,
  type PostOptions,
  path,
  type ReadOptions,
  type RequestOptions,
  type WriteOptions,
} from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

const NOTEBOOKS = '/api/v3/notebooks';

/** Saved notebooks. */
export function notebooks(connection: Connection) {
  const list = ({ signal, ...query }: PageOptions & NotebookFilters = {}) =>
    connection.json<Page<NotebookSummary>>({ method: 'GET', path: NOTEBOOKS, query, signal });
  return {
    create: (fields: NotebookFields = {}, options: PostOptions = {}) =>
      connection.json<Notebook>({ method: 'POST', path: NOTEBOOKS, body: fields, ...options }),
    get: (notebookId: string, options: RequestOptions = {}) =>
      connection.json<Notebook>({ method: 'GET', path: path`/api/v3/notebooks/${notebookId}`, ...options }),
    /** Resolves with the notebook and its entity tag; without the notebook when it is still the one of `ifNoneMatch`. */
    getTagged: (notebookId: string, options: ReadOptions = {}) =>
      connection.tagged<Notebook>({
        method: 'GET',
        path: path`/api/v3/notebooks/${notebookId}`,
        ...options,
      }),
    list,
    each: (options: PageOptions & NotebookFilters = {}) => eachItem(list, options),
    /** Rejects with `session_open` while the notebook has a session, and with `stale_update` if someone else changed it first. */
    update: (notebookId: string, change: NotebookChange, options: WriteOptions = {}) =>
      connection.json<Notebook>({
        method: 'PATCH',
        path: path`/api/v3/notebooks/${notebookId}`,
        body: change,
        ...options,
      }),
    delete: (notebookId: string, options: WriteOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/notebooks/${notebookId}`, ...options }),
    /** Creates a notebook from the text of a file, or replaces the cells of one. */
    import: (file: NotebookImport, options: PostOptions = {}) =>
      connection.json<Notebook>({ method: 'POST', path: `${NOTEBOOKS}/import`, body: file, ...options }),
    /** Resolves with the names of the secret variables. */
    secrets: async (notebookId: string, options: RequestOptions = {}) => {
      const secretsPath = path`/api/v3/notebooks/${notebookId}/secrets`;
      const list = await connection.json<{ items: NotebookSecret[] }>({
        method: 'GET',
        path: secretsPath,
        ...options,
      });
      return list.items;
    },
    /** Sets a secret variable, which the next kernel of the notebook has. It is never returned. */
    setSecret: (notebookId: string, name: string, value: string, options: RequestOptions = {}) =>
      connection.json<NotebookSecret>({
        method: 'PUT',
        path: path`/api/v3/notebooks/${notebookId}/secrets/${name}`,
        body: { value },
        ...options,
      }),
    deleteSecret: (notebookId: string, name: string, options: RequestOptions = {}) =>
      connection.json<void>({
        method: 'DELETE',
        path: path`/api/v3/notebooks/${notebookId}/secrets/${name}`,
        ...options,
      }),
    /** Resolves with the file. An `html` page loads its front end from the server, or from a public CDN with `cdn`. */
    export: (
      notebookId: string,
      format: NotebookFileFormat | 'html',
      { frontEnd, ...options }: RequestOptions & { readonly frontEnd?: 'server' | 'cdn' | undefined } = {},
    ) =>
      connection.bytes({
        method: 'GET',
        path: path`/api/v3/notebooks/${notebookId}/export`,
        query: { format, frontEnd },
        ...options,
      }),
  };
}
