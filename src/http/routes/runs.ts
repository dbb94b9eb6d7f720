import type { AgentPlane } from '#src/agent/open-agents.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { RunReader } from '#src/runtime/runs/run-reader.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { RunIndexEntry } from '#storage/records/runs.ts';
import type { RunCancellation } from '../handlers/run-cancellation.ts';
import type { RunWaiting } from '../handlers/run-waiting.ts';
import { assetReply } from '../reply/content-reply.ts';
import { accepted, encodedJson, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type RequestHome, type Route } from '../route.ts';

/**
 * Returns a function that finds the home of a run: the home of its session. For an unknown run the function returns undefined,
 * and this worker answers the request. Another worker might still see a run that was just deleted.
 */
export function homeOfRun(reader: Pick<RunReader, 'homeOf'>) {
  return ({ principal, params }: RunRequest): RequestHome => {
    const id = reader.homeOf(principal.workspaceId, params.runId);
    return id === undefined ? undefined : { id };
  };
}

interface RunRequest {
  readonly principal: Principal;
  readonly params: { readonly runId: string };
}

export interface RunRoutesOptions {
  readonly cancellation: RunCancellation;
  readonly waiting: RunWaiting;
  /** Guards the runs of conversations. */
  readonly agents: Pick<AgentPlane, 'guardRun' | 'mayReadRun'>;
}

/** Runs and their assets. */
export function runRoutes(
  { runs, runDeletion: deletion }: Pick<RunPlaneContext, 'runs' | 'runDeletion'>,
  { cancellation, waiting, agents }: RunRoutesOptions,
): readonly Route[] {
  const homeOf = homeOfRun(runs.reader);
  return [
    defineRoute({
      ...OPERATIONS.listRuns,
      summary: 'List the runs of the workspace',
      description:
        'Executions of notebooks, and the prompts of the conversations that you can read. Oldest first unless the order ' +
        'says otherwise. A page may have fewer items than `limit` and still a `nextCursor`.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) => {
        const mayRead = (run: RunIndexEntry) => agents.mayReadRun(principal, run);
        return encodedJson(await runs.reader.list(principal.workspaceId, { ...query, signal }, mayRead));
      },
    }),
    defineRoute({
      ...OPERATIONS.getRun,
      summary: 'Read a run',
      description:
        'Runs can still be read after their sessions have closed. With `wait` the response is sent when ' +
        'the run has ended or the time is over. For a `stale` run it is sent at once.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: ({ wait }) => wait === 0,
      homeOf,
      handle: (request) => waiting.read(request, request.params.runId),
    }),
    defineRoute({
      ...OPERATIONS.deleteRun,
      summary: 'Delete a run',
      description:
        'Deletes the run with its output and its assets. The run must have ended; cancel a `stale` run first. The ' +
        'run of a prompt can be deleted by the owner of the conversation and by owners of the workspace; the entries of the ' +
        'conversation stay.',
      tags: ['Runs'],
      access: { action: 'run.delete' },
      homeOf,
      errors: ['run_in_progress', 'conversation_read_only'],
      handle({ principal, params }) {
        agents.guardRun(principal, params.runId, 'delete');
        deletion.delete(principal.workspaceId, params.runId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.cancelRun,
      whileFull: true,
      summary: 'Cancel a run',
      description:
        'Returns 202 when the cancellation has begun. Follow `run-status` on the event stream, or read the run, to learn ' +
        'when it has ended. A run that is still running can be cancelled again.',
      tags: ['Runs'],
      access: { action: 'run.cancel' },
      homeOf,
      errors: ['run_finished', 'conversation_read_only'],
      checkAccess: ({ principal, params }) => agents.guardRun(principal, params.runId, 'control'),
      handle({ principal, params }) {
        const { runId } = params;
        cancellation.cancel(principal, runId);
        return accepted({ runId, status: 'cancelling' }, pathOf('getRun', { runId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.cancelRuns,
      whileFull: true,
      summary: 'Cancel many runs',
      description:
        'Cancels each run as `POST /api/v3/runs/{runId}/cancel` does. The response has one item for each ' +
        'run, in the order of the request, with an error if the run could not be cancelled.',
      tags: ['Runs'],
      access: { action: 'run.cancel' },
      handle({ principal, body }) {
        const items = cancellation.cancelAll(principal, body.runIds);
        return items instanceof Promise ? items.then((all) => ok({ items: all })) : ok({ items });
      },
    }),
    defineRoute({
      ...OPERATIONS.getRunAsset,
      summary: 'Read an asset of a run',
      description:
        'An asset is an output that is too large for the run record. Its media type was chosen by notebook code, so only ' +
        'plain images and plain text are marked to be shown in the browser; everything else is marked as a download.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      errors: ['range_not_satisfiable'],
      handle({ principal, params, headers, headOnly }) {
        agents.guardRun(principal, params.runId, 'read');
        const { mimetype, sha256, bytes } = runs.reader.asset(
          principal.workspaceId,
          params.runId,
          params.assetId,
        );
        return assetReply({ mimetype, sha256, bytes }, headers, headOnly);
      },
    }),
    defineRoute({
      ...OPERATIONS.deleteRunAsset,
      summary: 'Delete an asset of a run',
      description:
        'The run must have ended. The run is kept and still names the asset, which can no longer be read.',
      tags: ['Runs'],
      access: { action: 'run.delete' },
      homeOf,
      errors: ['run_in_progress', 'conversation_read_only'],
      handle({ principal, params }) {
        agents.guardRun(principal, params.runId, 'delete');
        deletion.deleteAsset(principal.workspaceId, params.runId, params.assetId);
        return noContent();
      },
    }),
  ];
}
