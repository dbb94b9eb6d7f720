/** Jobs of a server whose clock is set forward or back. The server is real, and only what `Date` says is set. */
// own process: it sets the clock
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type JobId, newId, type OccurrenceId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { JobChange } from '#src/contract/wire/job.ts';
import { JobStates } from '#src/jobs/job-states.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { occurrenceRecords } from '#storage/records/jobs.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const server = await startServer(test);
const { jobs, notebooks } = server.client;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

test('instants that have come before a change of the job have their occurrences, although the server has not noticed the time', async (t) => {
  for (const change of [{ paused: true }, { schedule: { everyS: 3600 } }]) {
    const { job, setClock } = await everyMinute(t);
    setClock(2.5 * MINUTE_MS);
    await changeOf(job.id, change);
    assert.deepEqual(await minutesOf(job), [1, 2]);
  }
});

test('a clock that is set back gives no instant a second occurrence, whatever is changed', async (t) => {
  const { job, setClock } = await everyMinute(t);
  setClock(10 * MINUTE_MS);
  await changeOf(job.id, { paused: true });
  const before = await minutesOf(job);
  assert.equal(before.at(-1), 10);
  setClock(5 * MINUTE_MS);
  const resumed = await changeOf(job.id, { paused: false });
  assert.equal(resumed.next[0], at(job, 11));
  const changed = await changeOf(job.id, { schedule: { everyS: 30 } });
  assert.equal(changed.next[0], at(job, 10.5));
  await changeOf(job.id, { paused: true });
  assert.deepEqual(await minutesOf(job), before);
});

test('an instant that the job has passed cannot be its only one', async (t) => {
  const { job, setClock } = await everyMinute(t);
  setClock(10 * MINUTE_MS);
  await changeOf(job.id, { paused: true });
  setClock(5 * MINUTE_MS);
  const only = (minute: number) => changeOf(job.id, { schedule: { at: at(job, minute) } });
  assert.equal(await refusalOf(only(10)), '400 invalid_request');
  assert.equal((await only(10.1)).paused, true);
});

test('a job that was resumed while the clock was more than a day ahead begins at the present time', async (t) => {
  for (const [aheadMs, next] of [
    [DAY_MS, 24 * 60 + 1],
    [DAY_MS + MINUTE_MS, 1],
  ] as const) {
    const { job, setClock } = await everyMinute(t);
    setClock(aheadMs);
    await changeOf(job.id, { paused: true });
    setClock(0);
    const resumed = await changeOf(job.id, { paused: false });
    assert.equal(resumed.next[0], at(job, next));
    await changeOf(job.id, { paused: true });
  }
});

test('occurrences are listed in their order, also when another process with a clock ahead has written the earlier ones', async (t) => {
  const { store } = await temporaryStore(t);
  const runtime = new ActorRuntime(store, rememberingLog().log);
  const states = new JobStates({ store, runtime, metrics: new ServerMetrics(), cluster: ALONE });
  const job = { workspaceId: 'ws_1' as WorkspaceId, id: newId<JobId>('job') };
  // The time in an id of this process only increases, so another process is imitated by its record.
  const [first, ...digits] = newId<OccurrenceId>('occurrence').split('_');
  const earlier = `${first}_z${digits.join('').slice(1)}`;
  store.write((tx) => tx.put(occurrenceRecords, Buffer.from('{}'), job.workspaceId, job.id, earlier));
  await store.durable();
  assert.ok(states.newOccurrenceId(job) > earlier);
});

/** Makes a job that fires each minute from the present time of a clock, which the returned function sets to so long after that. */
async function everyMinute(t: TestContext) {
  const { id: notebookId } = await notebooks.create({ serialization: { cells: [] } });
  const job = await jobs.create({ target: { notebookId }, schedule: { everyS: 60 } });
  const createdMs = Date.parse(job.createdAt);
  const setClock = (ms: number) => {
    t.mock.timers.reset();
    t.mock.timers.enable({ apis: ['Date'], now: createdMs + ms });
  };
  setClock(0);
  return { job, setClock };
}

async function changeOf(id: string, change: Omit<JobChange, 'expectedUpdatedAt'>) {
  const { updatedAt: expectedUpdatedAt } = await jobs.get(id);
  return jobs.update(id, { expectedUpdatedAt, ...change });
}

interface Made {
  readonly id: string;
  readonly createdAt: string;
}

function at({ createdAt }: Made, minute: number): string {
  return new Date(Date.parse(createdAt) + minute * MINUTE_MS).toISOString();
}

async function minutesOf({ id, createdAt }: Made): Promise<number[]> {
  const { items } = await jobs.occurrences(id, { limit: 100 });
  return items.map(({ dueAt }) => (Date.parse(dueAt) - Date.parse(createdAt)) / MINUTE_MS);
}
