import type { ExecutionRequest, NotebookRun, SubmittedRun } from '#src/wire/run.ts';
import type { Page } from '#src/wire/shape.ts';
import { type Connection, type PostOptions, path } from './connection.ts';
import { eachItem, type PageOptions } from './paging.ts';

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
    /** Resolves once the run is accepted and stored; `waitForRun` tells how it ended. */
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
