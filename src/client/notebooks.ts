import { type Connection, type PostOptions, path, type RequestOptions } from './connection.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';

type Members = Readonly<Record<string, unknown>>;

export interface Cell {
  readonly cell_id: string;
  readonly code: string;
  /** marimo's cell options, and `name`. */
  readonly options: Members;
}

export interface Serialization {
  readonly version: string;
  readonly app: { readonly options: Members };
  readonly cells: readonly Cell[];
  /** Computed by the service: false when a cell does not parse. */
  readonly valid: boolean;
  readonly ui_values: Members;
}

export interface Notebook {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly serialization: Serialization;
  readonly datasourceSlugs: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
}

/** What a list shows of a notebook. */
export interface NotebookSummary {
  readonly id: string;
  readonly title: string | null;
  readonly cellCount: number;
  readonly datasourceSlugs: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface NotebookFields {
  readonly serialization?: {
    readonly version?: string;
    readonly app?: { readonly options?: Members };
    readonly cells?: readonly {
      readonly cell_id: string;
      readonly code: string;
      readonly options?: Members;
    }[];
    readonly valid?: boolean;
    readonly ui_values?: Members;
  };
  readonly datasourceSlugs?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

export interface NotebookChange extends NotebookFields {
  /** The `updatedAt` of the last read. */
  readonly expectedUpdatedAt: string;
}

export type NotebookFileFormat = 'py' | 'ipynb' | 'md';

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
    /** Refused while the notebook is open (`session_open`), and when it was changed in between (`stale_update`). */
    update: (notebookId: string, change: NotebookChange, options: RequestOptions = {}) =>
      connection.json<Notebook>({
        method: 'PATCH',
        path: path`/api/v3/notebooks/${notebookId}`,
        body: change,
        ...options,
      }),
    delete: (notebookId: string, options: RequestOptions = {}) =>
      connection.json<void>({ method: 'DELETE', path: path`/api/v3/notebooks/${notebookId}`, ...options }),
    /** A new notebook from the text of a notebook file. */
    import: (file: { format: NotebookFileFormat; content: string }, options: PostOptions = {}) =>
      connection.json<Notebook>({ method: 'POST', path: `${NOTEBOOKS}/import`, body: file, ...options }),
    /** An `html` page loads its front end from the server, unless told to from a public CDN. */
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
