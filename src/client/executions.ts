import { type Connection, type PostOptions, path } from './connection.ts';
import { eachItem, type Page, type PageOptions } from './paging.ts';
import type { NotebookRun, SubmittedRun } from './runs.ts';

export type CacheMode = 'default' | 'no-cache' | 'no-store';

export interface CellConfig {
  readonly disabled?: boolean;
  readonly hideCode?: boolean;
  readonly column?: number | null;
  readonly name?: string;
}

export interface RequestedCell {
  readonly cellId: string;
  /** Replaces the cell's code, and is saved. */
  readonly code?: string;
  /** Changes the cell's settings, and is saved. */
  readonly config?: CellConfig;
}

export type ExecutionRequest =
  | { readonly type: 'all'; readonly cacheMode?: CacheMode }
  | {
      readonly type: 'cells';
      readonly cells: readonly RequestedCell[];
      readonly cacheMode?: CacheMode;
    };

/** Executions of cells in a notebook session. */
export function executions(connection: Connection) {
  const list = (sessionId: string, { after, limit, signal }: PageOptions = {}) =>
    connection.json<Page<NotebookRun>>({
      method: 'GET',
      path: path`/api/v3/notebook-sessions/${sessionId}/executions`,
      query: { after, limit },
      signal,
    });
  return {
    /** Answers once the run is accepted and on disk; `waitForRun` tells how it ended. */
    submit: (sessionId: string, request: ExecutionRequest, options: PostOptions = {}) =>
      connection.json<SubmittedRun>({
        method: 'POST',
        path: path`/api/v3/notebook-sessions/${sessionId}/executions`,
        body: request,
        ...options,
      }),
    list,
    each: (sessionId: string, options: PageOptions = {}) =>
      eachItem((page) => list(sessionId, page), options),
  };
}
