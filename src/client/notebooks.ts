import type {
  Notebook,
  NotebookChange,
  NotebookFields,
  NotebookFileFormat,
  NotebookSummary,
} from '#src/wire/notebook.ts';
import type { Page } from '#src/wire/shape.ts';
import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

const NOTEBOOKS = '/api/v3/notebooks';

/** Saved notebooks. */
export function notebooks(connection: Connection) {
  const list = ({ after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<NotebookSummary>>({
      method: 'GET',
      path: NOTEBOOKS,
      query: { after, limit },
      signal,
    });
  return {
    create: (fields: NotebookFields = {}, options: PostOptions = {}) =>
      connection.json<Notebook>({ method: 'POST', path: NOTEBOOKS, body: fields, ...options }),
    get: (notebookId: string, options: RequestOptions = {}) =>
      connection.json<Notebook>({ method: 'GET', path: path`/api/v3/notebooks/${notebookId}`, ...options }),
    list,
    each: (options: PageOptions = {}) => eachItem(list, options),
    /** Rejects with `session_open` while a session is open on it, and with `stale_update` when it has changed since it was read. */
    update: (notebookId: string, change: NotebookChange, options: RequestOptions = {}) =>
      connection.json<Notebook>({
        method: 'PATCH',
        path: path`/api/v3/notebooks/${notebookId}`,
        body: change,
        ...options,
      }),
    delete: (notebookId: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/notebooks/${notebookId}`, ...options }),
    /** Creates a notebook from the text of a file. */
    import: (file: { format: NotebookFileFormat; content: string }, options: PostOptions = {}) =>
      connection.json<Notebook>({ method: 'POST', path: `${NOTEBOOKS}/import`, body: file, ...options }),
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
