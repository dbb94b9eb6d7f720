/** The decisions at the instants of a job: which of them fires, and which are skipped with which reason. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { jobStatus } from '#machines/job.ts';
import { type JobId, newId, type OccurrenceId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import { Firing } from '#src/jobs/firing.ts';
import { JobStates, occurrenceIn } from '#src/jobs/job-states.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { jobRecords, occurrenceRecords } from '#storage/records/jobs.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';

const CREATED = Date.UTC(2027, 0, 1);
const WORKSPACE = 'ws_1' as WorkspaceId;
const MINUTE_MS = 60_000;

test('after a stop the last missed instant fires, and the earlier ones are skipped with the reason', async (t) => {
  const job = await everyMinute(t, 'last');
  job.attend(CREATED + 5 * MINUTE_MS + 30_000);
  assert.deepEqual(await job.seen(), [
    ...[1, 2, 3, 4].map((minute) => ({ minute, status: 'skipped', reason: 'missed' })),
    { minute: 5, status: 'due', reason: null },
  ]);
  assert.deepEqual([job.begun(), job.nextMinute(), job.status()], [1, 6, 'due']);
});

test('a job that does not catch up skips all instants that are more than a minute late', async (t) => {
  const job = await everyMinute(t, 'none', 10);
  job.attend(CREATED + 25 * MINUTE_MS);
  assert.deepEqual(await job.seen(), [
    { minute: 10, status: 'skipped', reason: 'missed' },
    { minute: 20, status: 'skipped', reason: 'missed' },
  ]);
  assert.deepEqual([job.begun(), job.nextMinute(), job.status()], [0, 30, 'waiting']);
  job.attend(CREATED + 31 * MINUTE_MS);
  assert.deepEqual((await job.seen()).at(-1), { minute: 30, status: 'due', reason: null });
});

test('an instant during an occurrence is skipped', async (t) => {
  const job = await everyMinute(t, 'last');
  job.attend(CREATED + MINUTE_MS);
  job.attend(CREATED + 2 * MINUTE_MS);
  assert.deepEqual((await job.seen()).at(-1), { minute: 2, status: 'skipped', reason: 'overlap' });
  assert.equal(job.begun(), 1);
});

test('of many missed instants the last hundred have a record each, and the earlier ones share one', async (t) => {
  const count = async (missed: number) => {
    const job = await everyMinute(t, 'last');
    job.attend(CREATED + (missed + 1) * MINUTE_MS);
    const [first] = await job.occurrences();
    return { records: (await job.seen()).length, until: first?.lastDueAt };
  };
  assert.deepEqual(await count(100), { records: 101, until: undefined });
  assert.deepEqual(await count(101), { records: 102, until: undefined });
  assert.deepEqual(await count(1_000_000), {
    records: 102,
    until: new Date(CREATED + (1_000_000 - 100) * MINUTE_MS).toISOString(),
  });
});

test('a job keeps its last 1,000 occurrences', async (t) => {
  const job = await everyMinute(t, 'last');
  job.attend(CREATED + MINUTE_MS);
  for (let minute = 2; minute <= 1000; minute++) {
    job.attend(CREATED + minute * MINUTE_MS);
    if (minute % 100 === 0) await job.committed();
  }
  assert.equal((await job.seen()).length, 1000);
  job.attend(CREATED + 1001 * MINUTE_MS);
  const kept = await job.seen();
  assert.deepEqual([kept.length, kept[0]?.minute, kept.at(-1)?.minute], [1000, 2, 1001]);
});

test('an owner who has left pauses the job, and the instant is skipped with that reason', async (t) => {
  const job = await everyMinute(t, 'last');
  job.removeOwner();
  job.attend(CREATED + MINUTE_MS);
  assert.deepEqual(await job.seen(), [{ minute: 1, status: 'skipped', reason: 'owner_left' }]);
  assert.deepEqual([job.status(), job.begun()], ['paused', 0]);
});

test('a listener hears each occurrence that is over and each pause once, in the turn of the commit', async (t) => {
  const job = await everyMinute(t, 'last');
  const { states } = job;
  const heard: string[] = [];
  states.onOccurrence((tx, { workspaceId, id }, { id: occurrenceId, status }) => {
    assert(tx.get(occurrenceRecords, workspaceId, id, occurrenceId) !== undefined);
    heard.push(status);
  });
  states.onPaused((_, { id }, reason) => {
    assert.equal(id, job.id);
    heard.push(`paused: ${reason?.code}`);
  });
  job.attend(CREATED + 2 * MINUTE_MS);
  assert.deepEqual(heard, ['skipped']);
  job.removeOwner();
  states.changeOccurrence(job.address, job.current(), { status: 'running' });
  states.changeOccurrence(job.address, job.current(), { status: 'completed', finishedAt: 'now' });
  states.tell(job.address, { type: 'over', failure: null, retryAtMs: null });
  job.attend(CREATED + 3 * MINUTE_MS);
  job.attend(CREATED + 4 * MINUTE_MS);
  assert.deepEqual(heard, ['skipped', 'completed', 'skipped', 'paused: owner_left']);
});

async function everyMinute(t: TestContext, catchUp: 'last' | 'none', minutes = 1) {
  const { store } = await temporaryStore(t);
  const runtime = new ActorRuntime(store, rememberingLog().log);
  const states = new JobStates({ store, runtime, metrics: new ServerMetrics(), cluster: ALONE });
  const id = newId<JobId>('job');
  const definition = {
    name: null,
    target: { notebookId: 'nb_1' },
    schedule: { everyS: 60 * minutes },
    timeZone: 'UTC',
    arguments: [],
    timeoutS: null,
    catchUp,
    retries: 2,
  };
  const createdAt = new Date(CREATED).toISOString();
  const nextMs = CREATED + minutes * MINUTE_MS;
  const job = { workspaceId: WORKSPACE, id };
  states.actors.spawn(job, { workspaceId: WORKSPACE, jobId: id, homeId: 'nb_1', nextMs, isPaused: false });
  store.write((tx) => {
    const record = {
      homeId: 'nb_1',
      ownerId: 'ada',
      readsDatasources: false,
      createdAt,
      updatedAt: createdAt,
      definition: Buffer.from(JSON.stringify(definition)),
    };
    tx.put(jobRecords, record, WORKSPACE, id);
    states.place(tx, job);
  });
  let begun = 0;
  let isMember = true;
  const begin = () => {
    begun++;
  };
  const firing = new Firing(
    { store },
    states,
    { begin },
    {
      roleOf: () => (isMember ? 'editor' : undefined),
      maySubmit: () => true,
      notebookExists: () => true,
    },
  );
  const occurrences = async (): Promise<Occurrence[]> => {
    await store.durable();
    const all = { limit: Number.POSITIVE_INFINITY };
    return [...store.list(occurrenceRecords, WORKSPACE, [id], all)].map(({ value }) => occurrenceIn(value));
  };
  const snapshot = () => {
    const peek = states.actors.peek(job);
    assert(peek !== undefined);
    return peek.snapshot;
  };
  return {
    id,
    address: job,
    states,
    current(): OccurrenceId {
      const { occurrence } = snapshot().context;
      assert(occurrence !== null);
      return occurrence.id;
    },
    attend: (nowMs: number) => firing.attend(job, nowMs),
    committed: () => store.durable(),
    occurrences,
    seen: async () =>
      (await occurrences()).map(({ dueAt, status, reason }) => ({
        minute: (Date.parse(dueAt) - CREATED) / MINUTE_MS,
        status,
        reason: reason?.code ?? null,
      })),
    begun: () => begun,
    nextMinute: () => ((snapshot().context.nextMs ?? 0) - CREATED) / MINUTE_MS,
    status: () => jobStatus(snapshot()),
    removeOwner() {
      isMember = false;
    },
  };
}
