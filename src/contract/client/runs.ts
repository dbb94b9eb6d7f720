import type { RunFilters } from '../wire/lists.ts';
import { pathOf } from '../wire/paths.ts';
import type { Run, RunStatus } from '../wire/run.ts';
import type { Connection, PostOptions, RequestOptions, WaitOptions } from './connection.ts';
import { followEvents } from './event-stream.ts';
import { bytesCallOf, callOf, operation, pagesOf, taggedCallOf } from './operation.ts';
import type { PageOptions } from './paging.ts';

/**
 * All statuses of runs, as values for choices. The compiler refuses the list when one is missing. The package leaves it out, because
 * the call is marked as pure.
 */
export const ALL_RUN_STATUSES: readonly RunStatus[] = /* @__PURE__ */ Object.values({
  running: 'running',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} satisfies { [Status in RunStatus]: Status });

/** Runs, of notebooks and of agents. */
export function runs(connection: Connection) {
  /** Resolves with the run, with `wait` once it has ended or that many seconds have passed. */
  const get = (runId: string, { signal, wait }: WaitOptions = {}) =>
    connection.json(operation('getRun', { params: { runId }, query: { wait }, signal }));
  const { list, each } = pagesOf<'listRuns', PageOptions & RunFilters>(connection, 'listRuns');
  return {
    get,
    /** Resolves with a page of the runs of the whole workspace that the caller may read. */
    list,
    each,
    getTagged: taggedCallOf(connection, 'getRun'),
    /** Resolves when the cancellation has begun; `wait` tells when the run has ended. */
    cancel: callOf(connection, 'cancelRun'),
    /** Cancels up to 100 runs. Resolves with the result for each. */
    cancelMany: async (runIds: readonly string[], options: PostOptions = {}) => {
      const { items } = await connection.json(operation('cancelRuns', { body: { runIds }, ...options }));
      return items;
    },
    /** Deletes a run that has ended, with its output and its assets. */
    delete: callOf(connection, 'deleteRun'),
    deleteAsset: callOf(connection, 'deleteRunAsset'),
    asset: bytesCallOf(connection, 'getRunAsset'),
    /**
     * Resolves with the run once it has ended, or is `stale`, which only cancelling changes. It subscribes to the
     * session's events before it reads the run, so that it misses no end.
     */
    async wait(runId: string, options: RequestOptions = {}): Promise<Run> {
      const first = await get(runId, options);
      if (isOver(first)) return first;
      const { sessionId } = first;
      const events =
        first.kind === 'notebook'
          ? pathOf('followNotebookSession', { sessionId })
          : pathOf('followAgentSession', { sessionId });
      for await (const event of followEvents(connection, events, options)) {
        const mayBeOver =
          event.type === 'session.replayed' ||
          (event.type === 'run-status' && event.data.runId === runId && event.data.status !== 'running');
        if (!mayBeOver) continue;
        const run = await get(runId, options);
        if (isOver(run)) return run;
      }
      return get(runId, options);
    },
  };
}

/** Returns whether the run has ended, or only cancelling can change it. */
export function isOver(run: Run): boolean {
  return run.status !== 'running' || run.stale === true;
}
