/** The decisions at the instants of a job: which of them fires, and which are skipped with which reason. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { type JobEvent, jobStatus } from '#machines/job.ts';
import { type JobId, newId, type OccurrenceId, type RunId, type WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import type { Job, Occurrence } from '#src/contract/wire/job.ts';
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

test('with a queue one instant waits for the occurrence in progress, and further ones are skipped', async (t) => {
  const job = await everyMinute(t, 'last', 1, 'queue');
  for (const minute of [1, 2, 3]) job.attend(CREATED + minute * MINUTE_MS);
  assert.deepEqual(await job.seen(), [
    { minute: 1, status: 'due', reason: null },
    { minute: 2, status: 'queued', reason: null },
    { minute: 3, status: 'skipped', reason: 'overlap' },
  ]);
  assert.deepEqual([job.begun(), job.queued(), job.nextMinute()], [1, 1, 4]);
});

test('a job that is paused skips the instant that waits, and says why', async (t) => {
  const job = await everyMinute(t, 'last', 1, 'queue');
  job.attend(CREATED + MINUTE_MS);
  job.attend(CREATED + 2 * MINUTE_MS);
  job.tell({ type: 'pause', reason: null });
  assert.deepEqual((await job.seen()).at(-1), { minute: 2, status: 'skipped', reason: 'paused' });
});

test('with cancel an instant replaces an occurrence without a run at once, and waits for the end of a run', async (t) => {
  const job = await everyMinute(t, 'last', 1, 'cancel');
  job.attend(CREATED + MINUTE_MS);
  const first = job.current();
  job.attend(CREATED + 2 * MINUTE_MS);
  const second = job.current();
  assert.notEqual(second, first);
  assert.deepEqual([job.begun(), job.superseded], [2, [first]]);
  job.tell({ type: 'begun', runId: 'run_1' as RunId });
  for (const minute of [3, 4]) job.attend(CREATED + minute * MINUTE_MS);
  assert.deepEqual([job.status(), job.current(), job.queued()], ['cancelling', second, 1]);
  assert.deepEqual((await job.seen()).slice(2), [
    { minute: 3, status: 'skipped', reason: 'overlap' },
    { minute: 4, status: 'queued', reason: null },
  ]);
  job.tell({ type: 'over', failure: null, retryAtMs: null });
  assert.deepEqual([job.status(), job.queued()], ['due', 0]);
});

test('an instant that replaces an occurrence between two attempts begins one attempt, also when the next one is due', async (t) => {
  const job = await everyMinute(t, 'last', 1, 'cancel');
  job.attend(CREATED + MINUTE_MS);
  const retryAtMs = CREATED + 2 * MINUTE_MS;
  job.tell({ type: 'over', failure: { code: 'kernel_killed', message: '' }, retryAtMs });
  job.attend(retryAtMs);
  assert.deepEqual([job.status(), job.begun()], ['due', 2]);
});

test('a job that catches up with all fires the oldest missed instant and queues the others in order', async (t) => {
  const job = await everyMinute(t, 'all');
  job.attend(CREATED + 4 * MINUTE_MS);
  assert.deepEqual(await job.seen(), [
    { minute: 1, status: 'due', reason: null },
    ...[2, 3, 4].map((minute) => ({ minute, status: 'queued', reason: null })),
  ]);
  job.attend(CREATED + 5 * MINUTE_MS);
  assert.deepEqual((await job.seen()).at(-1), { minute: 5, status: 'skipped', reason: 'overlap' });
  const order = [];
  for (let i = 0; i < 4; i++) {
    const current = job.current();
    order.push((await job.occurrences()).findIndex(({ id }) => id === current) + 1);
    job.tell({ type: 'over', failure: null, retryAtMs: null });
  }
  assert.deepEqual([order, job.status()], [[1, 2, 3, 4], 'waiting']);
});

test('at most the last hundred missed instants fire, also when some wait already', async (t) => {
  const job = await everyMinute(t, 'all');
  job.attend(CREATED + 100 * MINUTE_MS);
  assert.deepEqual(
    [(await job.seen()).filter(({ status }) => status === 'skipped').length, job.queued()],
    [0, 99],
  );
  job.attend(CREATED + 102 * MINUTE_MS);
  const seen = await job.seen();
  assert.deepEqual(
    seen.filter(({ status }) => status === 'skipped'),
    [{ minute: 2, status: 'skipped', reason: 'missed' }],
  );
  assert.deepEqual([job.queued(), seen.length], [100, 102]);
});

test('of more than a hundred missed instants the earlier ones share one skipped record', async (t) => {
  const job = await everyMinute(t, 'all');
  job.attend(CREATED + 1000 * MINUTE_MS);
  const [first] = await job.occurrences();
  const seen = await job.seen();
  assert.deepEqual(
    [seen.length, seen[0]?.status, seen[1], job.queued()],
    [101, 'skipped', { minute: 901, status: 'due', reason: null }, 99],
  );
  assert.equal(first?.lastDueAt, new Date(CREATED + 900 * MINUTE_MS).toISOString());
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

async function everyMinute(
  t: TestContext,
  catchUp: Job['catchUp'],
  minutes = 1,
  overlap: Job['overlap'] = 'skip',
) {
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
    overlap,
    catchUp,
    retries: 2,
    retryOn: 'server',
    outputs: [],
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
  let refusedFor: string | undefined;
  const superseded: string[] = [];
  const firing = new Firing(
    { store },
    states,
    {
      begin() {
        begun++;
      },
      supersede: (_, occurrenceId) => void superseded.push(occurrenceId),
    },
    {
      refusal: () => (refusedFor === undefined ? undefined : { code: refusedFor, message: '' }),
      obstacle: () => undefined,
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
    superseded,
    tell: (event: JobEvent) => states.tell(job, event),
    queued: () => snapshot().context.queue.length,
    removeOwner() {
      refusedFor = 'owner_left';
    },
  };
}
