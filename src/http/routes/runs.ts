import type { Principal } from '#src/core/principal.ts';
import type { RunReader } from '#src/runs/run-reader.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { accepted, ok } from '../reply/reply.ts';
import { defineRoute, type RequestHome, type Route } from '../route.ts';
import type { RunCancellation } from './run-cancellation.ts';
import type { GuardRun, RunWaiting } from './run-waiting.ts';

/**
 * Returns a function that finds the home of a run, which is that of its session. The function returns undefined for an
 * unknown run: the request is then answered here, because another worker might still see a run that was just deleted.
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

/** Runs. */
export function runRoutes(
  reader: RunReader,
  cancellation: RunCancellation,
  guard: GuardRun,
  waiting: RunWaiting,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.getRun,
      summary: 'Read a run',
      description:
        'Runs can still be read after their sessions have closed. With `wait` the response comes when the run has ended, or ' +
        'when the time is over. A run that is `stale` is not waited for.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      readsStoreOnly: ({ wait }) => wait === 0,
      homeOf: homeOfRun(reader),
      handle: (request) => waiting.read(request, request.params.runId),
    }),
    defineRoute({
      ...OPERATIONS.cancelRun,
      whileFull: true,
      summary: 'Cancel a run',
      description:
        'Returns 202 when the cancellation has begun. Follow `run-status` on the event stream, or read the run, to learn ' +
        'when it has ended. Cancelling a run again while it is still running is accepted again.',
      tags: ['Runs'],
      access: { action: 'run.cancel' },
      homeOf: homeOfRun(reader),
      errors: ['run_finished', 'conversation_read_only'],
      checkAccess: ({ principal, params }) => guard(principal, params.runId, 'control'),
      handle({ principal, params }) {
        const { runId } = params;
        cancellation.cancel(principal, runId);
        return accepted({ runId, status: 'cancelling' }, `/api/v3/runs/${runId}`);
      },
    }),
    defineRoute({
      ...OPERATIONS.cancelRuns,
      whileFull: true,
      summary: 'Cancel many runs',
      description:
        'Cancels each run as `POST /api/v3/runs/{runId}/cancel` does. The answer has an item for each, in the order of the ' +
        'request, with the error of those that could not be cancelled.',
      tags: ['Runs'],
      access: { action: 'run.cancel' },
      handle({ principal, body }) {
        const items = cancellation.cancelAll(principal, body.runIds);
        return items instanceof Promise ? items.then((all) => ok({ items: all })) : ok({ items });
      },
    }),
  ];
}
