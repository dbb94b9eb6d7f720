import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import {
  attentionMs,
  type JobContext,
  type JobEvent,
  jobMachine,
  jobStatus,
  MAX_FAILURES,
} from '#machines/job.ts';
import type { JobId, OccurrenceId, RunId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, outcomes, stored, type Table, testTable } from './chart-table.ts';

type State =
  | 'waiting'
  | 'active.due'
  | 'active.running'
  | 'active.cancelling'
  | 'active.backing-off'
  | 'paused'
  | 'ended';
type Row = State | 'active.running and paused' | 'active.running with a queue';
type Sent =
  | Exclude<JobEvent['type'], 'over' | 'skip' | 'reschedule'>
  | 'over'
  | 'over, to be repeated'
  | 'skip'
  | 'skip to the end'
  | 'reschedule'
  | 'reschedule to the end';

const FAILURE = { code: 'kernel_exited', message: 'The kernel ended by itself.' };
const occurrenceId = 'occ_1' as OccurrenceId;
const due: JobEvent = { type: 'due', occurrenceId, dueMs: 1000, nextMs: 2000 };
const fire: JobEvent = { type: 'fire', occurrenceId, dueMs: 1500 };
const begun: JobEvent = { type: 'begun', runId: 'run_1' as RunId };
const succeeded: JobEvent = { type: 'over', failure: null, retryAtMs: null };
const failed: JobEvent = { type: 'over', failure: FAILURE, retryAtMs: null };
const repeated: JobEvent = { type: 'over', failure: FAILURE, retryAtMs: 1800 };
const retry: JobEvent = { type: 'retry' };
const pause: JobEvent = { type: 'pause', reason: null };
const resume: JobEvent = { type: 'resume', nextMs: 3000 };
const skip: JobEvent = { type: 'skip', nextMs: 4000 };
const supersede: JobEvent = {
  type: 'supersede',
  occurrenceId: 'occ_9' as OccurrenceId,
  dueMs: 1900,
  nextMs: 6000,
};
const withdraw: JobEvent = { type: 'withdraw' };
const queue: JobEvent = {
  type: 'queue',
  queue: [
    { id: 'occ_2' as OccurrenceId, dueMs: 1100 },
    { id: 'occ_3' as OccurrenceId, dueMs: 1200 },
  ],
  nextMs: 7000,
};

const WAY: Record<Row, readonly JobEvent[]> = {
  waiting: [],
  'active.due': [due],
  'active.running': [due, begun],
  'active.running and paused': [due, begun, pause],
  'active.running with a queue': [due, begun, queue],
  'active.cancelling': [due, begun, supersede],
  'active.backing-off': [due, begun, repeated],
  paused: [pause],
  ended: [{ type: 'skip', nextMs: null }],
};
const ROWS = Object.keys(WAY) as Row[];

const EVENTS: Record<Sent, JobEvent> = {
  due,
  fire,
  begun,
  over: failed,
  'over, to be repeated': repeated,
  retry,
  pause,
  resume,
  queue,
  supersede,
  withdraw,
  skip,
  'skip to the end': { type: 'skip', nextMs: null },
  reschedule: { type: 'reschedule', nextMs: 5000 },
  'reschedule to the end': { type: 'reschedule', nextMs: null },
  delete: { type: 'delete' },
};

const NO_ATTEMPT = {
  begun: 'ignored',
  over: 'ignored',
  'over, to be repeated': 'ignored',
  retry: 'ignored',
  queue: 'ignored',
  supersede: 'ignored',
  withdraw: 'ignored',
} as const;

const active = <const S extends State>(state: S) =>
  ({
    due: 'ignored',
    fire: { refused: 'job_running' },
    begun: 'ignored',
    over: { to: 'waiting' },
    'over, to be repeated': { to: 'active.backing-off' },
    retry: 'ignored',
    queue: { to: state },
    supersede: { to: 'active.due' },
    withdraw: 'ignored',
    pause: { to: state },
    resume: 'ignored',
    skip: { to: state },
    'skip to the end': { to: state },
    reschedule: { to: state },
    'reschedule to the end': { to: state },
    delete: { refused: 'job_running' },
  }) as const;

const TABLE: Table<Row, Sent> = {
  waiting: {
    ...NO_ATTEMPT,
    due: { to: 'active.due' },
    fire: { to: 'active.due' },
    pause: { to: 'paused' },
    resume: 'ignored',
    skip: { to: 'waiting' },
    'skip to the end': { to: 'ended' },
    reschedule: { to: 'waiting' },
    'reschedule to the end': { to: 'ended' },
    delete: { to: 'waiting' },
  },
  'active.due': {
    ...active('active.due'),
    begun: { to: 'active.running' },
    withdraw: { to: 'waiting' },
  },
  'active.running': { ...active('active.running'), supersede: { to: 'active.cancelling' } },
  'active.running with a queue': {
    ...active('active.running'),
    over: { to: 'active.due' },
    supersede: { to: 'active.cancelling' },
  },
  'active.cancelling': {
    ...active('active.cancelling'),
    over: { to: 'active.due' },
    'over, to be repeated': { to: 'active.due' },
    supersede: { to: 'active.cancelling' },
  },
  'active.running and paused': {
    ...active('active.running'),
    supersede: { to: 'active.cancelling' },
    over: { to: 'paused' },
    resume: { to: 'active.running' },
  },
  'active.backing-off': { ...active('active.backing-off'), retry: { to: 'active.due' } },
  paused: {
    ...NO_ATTEMPT,
    due: 'ignored',
    fire: { to: 'active.due' },
    pause: 'ignored',
    resume: { to: 'waiting' },
    skip: 'ignored',
    'skip to the end': 'ignored',
    reschedule: { to: 'paused' },
    'reschedule to the end': { to: 'paused' },
    delete: { to: 'paused' },
  },
  ended: {
    ...NO_ATTEMPT,
    due: 'ignored',
    fire: { to: 'active.due' },
    pause: { to: 'paused' },
    resume: 'ignored',
    skip: 'ignored',
    'skip to the end': 'ignored',
    reschedule: { to: 'waiting' },
    'reschedule to the end': { to: 'ended' },
    delete: { to: 'ended' },
  },
};

testTable({
  what: 'a job',
  machine: jobMachine,
  table: TABLE,
  transient: ['settling'],
  stateOf: (row) => leafOf(jobAt(row).getSnapshot().value),
  effects: (row) => outcomes(EVENTS, () => jobAt(row)),
});

for (const row of ROWS) {
  test(`a job stored in ${row} comes back unchanged`, () => {
    const before = jobAt(row).getSnapshot();
    const after = createActor(jobMachine, { snapshot: stored(jobMachine, before), input: INPUT }).start();
    const { value, context } = after.getSnapshot();
    assert.deepEqual({ value, context }, { value: before.value, context: before.context });
  });
}

test('a job has an occurrence exactly while it is active', () => {
  const isActive = (row: Row) => jobAt(row).getSnapshot().matches('active');
  assert.deepEqual(
    ROWS.map((row) => contextAt(row).occurrence !== null),
    ROWS.map(isActive),
  );
});

test('an instant that comes during an occurrence moves only the next instant', () => {
  const before = contextAt('active.running');
  const { context } = jobAt('active.running', skip).getSnapshot();
  assert.deepEqual(context, { ...before, nextMs: 4000 });
});

test('a firing by a person leaves the next instant as it is', () => {
  const { nextMs, occurrence } = jobAt('waiting', fire).getSnapshot().context;
  assert.deepEqual([nextMs, occurrence?.dueMs], [INPUT.nextMs, 1500]);
});

test('each attempt of an occurrence has a number and a run of its own', () => {
  const job = jobAt('active.running', repeated, retry);
  assert.deepEqual(job.getSnapshot().context.occurrence, {
    id: occurrenceId,
    dueMs: 1000,
    attempt: 2,
    runId: null,
    retryAtMs: null,
  });
});

test('five failures in a row pause a job, and a success between them does not', () => {
  const fails = Array.from({ length: MAX_FAILURES - 1 }, () => [due, begun, failed]).flat();
  assert.equal(
    jobStatus(jobAt('waiting', ...fails, due, begun, succeeded, due, begun, failed).getSnapshot()),
    'waiting',
  );
  const paused = jobAt('waiting', ...fails, due, failed).getSnapshot();
  assert.equal(jobStatus(paused), 'paused');
  assert.deepEqual(paused.context.reason, {
    code: 'failures',
    message: '5 occurrences in a row have failed. The last failure: The kernel ended by itself.',
  });
});

test('each queued occurrence begins with the end of the one before it', () => {
  const job = jobAt('active.running with a queue');
  const seen = () => {
    const { context } = job.getSnapshot();
    return [jobStatus(job.getSnapshot()), context.occurrence?.id, context.queue.length];
  };
  assert.deepEqual(seen(), ['running', 'occ_1', 2]);
  job.send(failed);
  assert.deepEqual(seen(), ['due', 'occ_2', 1]);
  job.send(withdraw);
  assert.deepEqual(seen(), ['due', 'occ_3', 0]);
  job.send(begun);
  job.send(succeeded);
  assert.deepEqual(seen(), ['waiting', undefined, 0]);
  assert.equal(contextAt('active.running with a queue').nextMs, 7000);
});

test('a job that is paused drops its queue, whether a person or its failures pause it', () => {
  assert.deepEqual(jobAt('active.running with a queue', pause).getSnapshot().context.queue, []);
  const fails = Array.from({ length: MAX_FAILURES - 1 }, () => [due, begun, failed]).flat();
  const paused = jobAt('waiting', ...fails, due, begun, queue, failed).getSnapshot();
  assert.deepEqual([jobStatus(paused), paused.context.queue], ['paused', []]);
});

test('a run that is superseded ends before the next occurrence begins, and is not repeated', () => {
  const { queue: waiting, occurrence, nextMs } = contextAt('active.cancelling');
  assert.deepEqual([waiting, occurrence?.id, nextMs], [[{ id: 'occ_9', dueMs: 1900 }], 'occ_1', 6000]);
  const after = jobAt('active.cancelling', repeated).getSnapshot().context;
  assert.deepEqual([after.occurrence?.id, after.queue], ['occ_9', []]);
});

test('an occurrence without a run is superseded at once, and the queue with it', () => {
  for (const row of ['active.due', 'active.backing-off'] as const) {
    const after: JobContext = jobAt(row, queue, supersede).getSnapshot().context;
    assert.deepEqual(after.occurrence, {
      id: 'occ_9',
      dueMs: 1900,
      attempt: 1,
      runId: null,
      retryAtMs: null,
    });
    assert.deepEqual(after.queue, []);
  }
});

test('an occurrence that is withdrawn counts neither as a failure nor as a success', () => {
  const { failures } = jobAt('waiting', due, begun, failed, due, withdraw).getSnapshot().context;
  assert.equal(failures, 1);
});

test('a job that was resumed may fail five times again', () => {
  const fails = Array.from({ length: MAX_FAILURES }, () => [due, begun, failed]).flat();
  const { context } = jobAt('waiting', ...fails, resume).getSnapshot();
  assert.deepEqual([context.failures, context.reason, context.nextMs], [0, null, 3000]);
});

test('a job that is paused during an occurrence is paused after it', () => {
  assert.equal(jobStatus(jobAt('active.running and paused', succeeded).getSnapshot()), 'paused');
});

test('a job that a person has paused keeps no reason after five failures', () => {
  const fails = Array.from({ length: MAX_FAILURES }, () => [fire, failed]).flat();
  assert.equal(jobAt('paused', ...fails).getSnapshot().context.reason, null);
});

test('a job without a next instant ends after its last occurrence', () => {
  const last: JobEvent = { type: 'due', occurrenceId, dueMs: 1000, nextMs: null };
  assert.equal(jobStatus(jobAt('waiting', last, begun, succeeded).getSnapshot()), 'ended');
});

test('a job needs attention at its next attempt or at its next instant, whichever comes first', () => {
  assert.deepEqual(
    ROWS.map((row) => [row, attentionMs(contextAt(row))]),
    [
      ['waiting', 1000],
      ['active.due', 2000],
      ['active.running', 2000],
      ['active.running and paused', null],
      ['active.running with a queue', 7000],
      ['active.cancelling', 6000],
      ['active.backing-off', 1800],
      ['paused', null],
      ['ended', null],
    ],
  );
});

test('each state of a job has a status', () => {
  assert.deepEqual(
    ROWS.map((row) => jobStatus(jobAt(row).getSnapshot())),
    ['waiting', 'due', 'running', 'running', 'running', 'cancelling', 'backing-off', 'paused', 'ended'],
  );
});

const INPUT = {
  workspaceId: 'ws_1' as WorkspaceId,
  jobId: 'job_1' as JobId,
  homeId: 'nb_1',
  nextMs: 1000,
  isPaused: false,
};

function jobAt(row: Row, ...further: readonly JobEvent[]) {
  const job = createActor(jobMachine, { input: INPUT }).start();
  for (const event of [...WAY[row], ...further]) job.send(event);
  return job;
}

function contextAt(row: Row): JobContext {
  return jobAt(row).getSnapshot().context;
}
