import type { SessionRunsFilters } from '../wire/lists.ts';
import type { ExecutionRequest } from '../wire/run.ts';
import { type Connection, DEFAULT_WAIT_S, type PostOptions, type WaitOptions } from './connection.ts';
import { operation, pagesOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

/** Executions of cells in a notebook session. */
export function executions(connection: Connection) {
  return {
    /** Resolves once the run is accepted and stored; `waitForRun` tells how it ended. */
    submit: (sessionId: string, request: ExecutionRequest, options: PostOptions = {}) =>
      connection.json(
        operation<'submitExecution', 202>('submitExecution', {
          params: { sessionId },
          body: request,
          ...options,
        }),
      ),
    /** Executes and resolves with the run once it has ended; with the accepted submission when `wait` seconds have passed. */
    run: (
      sessionId: string,
      request: ExecutionRequest,
      { wait = DEFAULT_WAIT_S, ...options }: PostOptions & WaitOptions = {},
    ) =>
      connection.json(
        operation('submitExecution', { params: { sessionId }, query: { wait }, body: request, ...options }),
      ),
    ...pagesOf<'listExecutions', PageOptions & SessionRunsFilters>(connection, 'listExecutions'),
  };
}
