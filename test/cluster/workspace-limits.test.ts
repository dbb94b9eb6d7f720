/** Operations about a whole workspace whose notebooks and conversations are at home in three workers. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { ApiError } from '#src/contract/client/api-error.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually, workersOf } from '#test/support/processes.ts';

const WORKERS = 3;
const NOTEBOOKS = 7;
const MAX_RUNS = 4;
/** More streams than notebooks, each of which is followed until it is ready. */
const MAX_STREAMS = 9;
const AT_ONCE = 50;

const server = await startChildServer(test, {
  TROUPE_WORKERS: String(WORKERS),
  TROUPE_WORKSPACE_MAX_RUNS: String(MAX_RUNS),
  TROUPE_WORKSPACE_MAX_SUBSCRIBERS: String(MAX_STREAMS),
});
const { client } = server;
const notebooks = await Promise.all(
  Array.from({ length: NOTEBOOKS }, () => openNotebook(server, { a: 'import time\ntime.sleep(60)' })),
);

/** Resolves with the value of the call, or with status and code of its refusal. */
async function outcomeOf<T>(call: Promise<T>): Promise<T | string> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.code}`;
    throw error;
  }
}

test('when several executions of one notebook wait for a permit together, one execution begins a run', async () => {
  const [notebook] = notebooks; // nobody has any permits yet
  const outcomes = await Promise.all(
    Array.from({ length: AT_ONCE }, () => outcomeOf(notebook!.submit(['a']))),
  );
  const runIds = outcomes.filter((outcome) => outcome.startsWith('run_'));
  assert.equal(runIds.length, 1, outcomes.join(', '));
  const running = async () => (await client.runs.list({ status: 'running', limit: 100 })).items;
  assert.deepEqual(
    (await running()).map(({ id }) => id),
    runIds,
  );
  await client.runs.cancelMany(runIds);
  await eventually('it has ended', async () => (await running()).length === 0);
});

test('runs that begin at once in all notebooks are accepted up to the limit, and cancelled with one request', async () => {
  for (let round = 0; round < 3; round++) {
    const outcomes = await Promise.all(notebooks.map((notebook) => outcomeOf(notebook.submit(['a']))));
    const runIds = outcomes.filter((outcome) => outcome.startsWith('run_'));
    assert.deepEqual(
      [runIds.length, ...new Set(outcomes.filter((outcome) => !outcome.startsWith('run_')))],
      [MAX_RUNS, '429 quota_exceeded'],
    );
    const listed = async () => (await client.runs.list({ status: 'running', limit: 100 })).items;
    assert.deepEqual(
      (await listed()).map(({ id }) => id),
      runIds.toSorted(),
    );
    const items = await client.runs.cancelMany(runIds);
    assert.deepEqual(
      items,
      runIds.map((runId) => ({ runId, status: 'cancelling', error: null })),
    );
    await eventually('all have ended', async () => (await listed()).length === 0);
  }
});

/** Opens many streams at once and closes them. Resolves with how many were accepted. */
async function openStreams(): Promise<number> {
  const outcomes = await Promise.all(
    Array.from({ length: AT_ONCE }, (_, n) => outcomeOf(EventLog.open(client, notebooks[n % NOTEBOOKS]!.id))),
  );
  const open = outcomes.filter((outcome) => typeof outcome !== 'string');
  const refusals = outcomes.filter((outcome) => typeof outcome === 'string');
  assert.deepEqual([...new Set(refusals)], ['429 quota_exceeded']);
  assert.ok(open.length <= MAX_STREAMS, String(open.length));
  await Promise.all(open.map((stream) => stream[Symbol.asyncDispose]()));
  return open.length;
}

test('streams that are opened at once are accepted up to the limit, and further streams once some are closed', async () => {
  assert.equal(await openStreams(), MAX_STREAMS);
  await eventually('as many are accepted again', async () => (await openStreams()) === MAX_STREAMS);
});

test('the permits of a worker that dies no longer count, and the limit holds over the remaining workers', async () => {
  const begin = async () => {
    const outcomes = await Promise.all(notebooks.map((notebook) => outcomeOf(notebook.submit(['a']))));
    return outcomes.filter((outcome) => outcome.startsWith('run_')).length;
  };
  assert.equal(await begin(), MAX_RUNS);
  const pids = () => workersOf(server.pid).map(({ pid }) => pid);
  const killed = pids().slice(1);
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  const areReplaced = () => pids().length === WORKERS && !pids().some((pid) => killed.includes(pid));
  await eventually('they are replaced', areReplaced);
  await eventually('there is room for as many as before', async () => {
    const begun = await begin();
    const { items } = await client.runs.list({ status: 'running', limit: 100 });
    const running = items.filter(({ stale }) => stale !== true).map(({ id }) => id);
    assert.ok(running.length <= MAX_RUNS, String(running.length));
    if (running.length > 0) await client.runs.cancelMany(running);
    return begun === MAX_RUNS;
  });
});
