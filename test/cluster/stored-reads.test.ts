/** Stored records are read where a request arrives, also when the notebook's home has a live session. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const AT_ONCE = 30;
const server = await startChildServer(test, { TROUPE_WORKERS: '3' });

/** Returns the different answers to a GET that is sent to all workers, over a connection for each request. */
async function answersTo<T>(path: string, factOf: (body: never) => T): Promise<T[]> {
  const bodies = await Promise.all(
    Array.from({ length: AT_ONCE }, async () => (await sendRaw(server.baseUrl, 'GET', path, OWNER, {})).body),
  );
  const facts = new Set(bodies.map((body) => JSON.stringify(factOf(body as never))));
  return [...facts].map((fact) => JSON.parse(fact) as T);
}

interface ShownRun {
  readonly id: string;
  readonly status: string;
  readonly stale?: boolean;
}

test('every worker shows a run of another worker as running', async () => {
  const notebook = await openNotebook(server, { a: 'import time\nwhile True: time.sleep(0.01)' });
  const { runId } = await server.client.executions.submit(notebook.id, { type: 'all' });
  const fact = ({ id, status, stale = false }: ShownRun) => ({ id, status, stale });
  const running = { id: runId, status: 'running', stale: false };
  assert.deepEqual(await answersTo(`/api/v3/runs/${runId}`, fact), [running]);
  for (const path of ['/api/v3/runs', `/api/v3/notebook-sessions/${notebook.id}/executions`])
    assert.deepEqual(await answersTo(path, ({ items }: { items: ShownRun[] }) => items.map(fact)), [
      [running],
    ]);
  assert.deepEqual(
    await answersTo(
      '/api/v3/notebook-sessions?status=open',
      ({ items }: { items: { status: string; currentRunId: string }[] }) =>
        items.map(({ status, currentRunId }) => ({ status, currentRunId })),
    ),
    [[{ status: 'busy', currentRunId: runId }]],
  );
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  assert.deepEqual(await answersTo(`/api/v3/runs/${runId}`, fact), [{ ...running, status: 'cancelled' }]);
  await notebook.close();
});

test('a request that waits for the end of a run is answered by the home of the run', async () => {
  const notebook = await openNotebook(server, { a: 'import time\ntime.sleep(1)' });
  const { runId } = await server.client.executions.submit(notebook.id, { type: 'all' });
  assert.deepEqual(await answersTo(`/api/v3/runs/${runId}?wait=30`, ({ status }: ShownRun) => status), [
    'completed',
  ]);
  await notebook.close();
});
