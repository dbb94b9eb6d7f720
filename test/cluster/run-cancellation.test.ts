/** Many runs are cancelled with one request, where their sessions are at home in several workers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { RunKind } from '#src/contract/wire/run.ts';
import { RunCancellation } from '#src/http/handlers/run-cancellation.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { testCluster } from '#test/support/test-cluster.ts';
import { testContext } from '#test/support/test-context.ts';
import { principal } from '../http/test-server.ts';

/** The session of each run. Sessions are at home in the worker whose number they end with. */
const SESSIONS = new Map([
  ['run_a', 'nb_0'],
  ['run_b', 'nb_1'],
  ['run_c', 'nb_2'],
  ['run_over', 'nb_1'],
  ['run_secret', 'conv_2'],
]);

function startWorkers() {
  const events: string[] = [];
  const clusters = testCluster(3, (_, id = '') => Number(id.at(-1)));
  const workers = clusters.map(
    (cluster) =>
      new RunCancellation(
        testContext<RunPlaneContext>({
          cluster,
          runs: {
            reader: { homeOf: (_: string, runId: string) => SESSIONS.get(runId) },
            cancel(_: string, runId: string, stop: (kind: RunKind, sessionId: string) => void) {
              const sessionId = SESSIONS.get(runId);
              if (sessionId === undefined) throw notFound();
              if (runId === 'run_over') throw new AppError('run_finished', 'It is over.');
              stop('notebook', sessionId);
            },
          },
          store: {
            refresh: () => void events.push(`${cluster.worker} refreshes`),
            durable: async () => void events.push(`${cluster.worker} commits`),
          },
        }),
        (_, runId) => {
          if (runId === 'run_secret') throw notFound();
        },
        (_kind, _workspaceId, sessionId, runId) =>
          void events.push(`${cluster.worker} stops ${runId} of ${sessionId}`),
      ),
  );
  return { workers, clusters, events };
}

test("the worker that is the home of a run's session cancels the run, and the results are in the order of the request", async () => {
  const { workers, events } = startWorkers();
  const runIds = ['run_c', 'run_secret', 'run_b', 'run_none', 'run_over', 'not an id', 'run_a'];
  const results = await workers[0]!.cancelAll(principal, runIds);
  assert.deepEqual(
    results.map(({ runId, status, error }) => [runId, status ?? error?.code]),
    [
      ['run_c', 'cancelling'],
      ['run_secret', 'not_found'],
      ['run_b', 'cancelling'],
      ['run_none', 'not_found'],
      ['run_over', 'run_finished'],
      ['not an id', 'not_found'],
      ['run_a', 'cancelling'],
    ],
  );
  assert.deepEqual(events.filter((event) => event.includes('stops')).toSorted(), [
    '0 stops run_a of nb_0',
    '1 stops run_b of nb_1',
    '2 stops run_c of nb_2',
  ]);
  const of = (worker: number) => events.filter((event) => event.startsWith(String(worker)));
  assert.deepEqual(of(1), ['1 refreshes', '1 stops run_b of nb_1', '1 commits']);
});

test('runs that are all at home here are cancelled at once, without asking other workers', () => {
  const { workers, clusters } = startWorkers();
  const results = workers[0]!.cancelAll(principal, ['run_a', 'run_none']);
  assert.ok(!(results instanceof Promise));
  assert.deepEqual(
    clusters.flatMap(({ asked }) => asked),
    [],
  );
});

test('a run whose worker has died is not reported as cancelled', async () => {
  const { workers, clusters } = startWorkers();
  clusters[2]!.onAsked('cancel-runs', () => undefined);
  const [result] = await workers[0]!.cancelAll(principal, ['run_c']);
  assert.deepEqual([result?.status, result?.error?.code], [null, 'unavailable']);
});

test('a run that moves to this worker during its question to other workers is cancelled here', async () => {
  const { workers, clusters, events } = startWorkers();
  clusters[2]!.onAsked('cancel-runs', () => clusters[0]!.takeAll());
  const [result] = await workers[0]!.cancelAll(principal, ['run_c']);
  assert.equal(result?.status, 'cancelling');
  assert.ok(events.includes('0 stops run_c of nb_2'));
});
