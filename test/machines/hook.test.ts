import assert from 'node:assert/strict';
import test from 'node:test';
import { createActor } from 'xstate';
import {
  type HookContext,
  type HookEvent,
  hookAttentionMs,
  hookMachine,
  hookStatus,
  MAX_DEATHS,
} from '#machines/hook.ts';
import type { DeliveryId, HookId, WorkspaceId } from '#src/base/ids.ts';
import { leafOf, outcomes, stored, type Table, testTable } from './chart-table.ts';

type State = 'idle' | 'due' | 'sending' | 'backing-off' | 'paused';
type Row = State | 'sending and paused' | 'paused with a delivery';

const deliveryId = 'dlv_1' as DeliveryId;
const queued: HookEvent = { type: 'queued', dueMs: 1000 };
const begin: HookEvent = { type: 'begin', deliveryId, nowMs: 2000 };
const failed: HookEvent = { type: 'failed', retryAtMs: 5000 };
const retry: HookEvent = { type: 'retry', nowMs: 6000 };
const delivered: HookEvent = { type: 'over', end: 'delivered', dueMs: null, because: '' };
const died: HookEvent = { type: 'over', end: 'dead', dueMs: null, because: 'It answered 500.' };
const diedBeforeOthers: HookEvent = { ...died, dueMs: 2500 };
const aside: HookEvent = { type: 'over', end: 'aside', dueMs: 7000, because: 'It answered 500.' };
const pause: HookEvent = { type: 'pause', reason: null };
const resume: HookEvent = { type: 'resume', dueMs: null, nowMs: 8000 };
const resumeWithQueue: HookEvent = { type: 'resume', dueMs: 8000, nowMs: 8000 };

const WAY: Record<Row, readonly HookEvent[]> = {
  idle: [],
  due: [queued],
  sending: [queued, begin],
  'sending and paused': [queued, begin, pause],
  'backing-off': [queued, begin, failed],
  paused: [pause],
  'paused with a delivery': [queued, begin, failed, pause],
};
const ROWS = Object.keys(WAY) as Row[];

const EVENTS = {
  queued,
  none: { type: 'none' },
  begin,
  underWay: { type: 'underWay', nowMs: 3000 },
  retry,
  failed,
  over: delivered,
  'over, and another waits': diedBeforeOthers,
  pause,
  resume,
  'resume, and one waits': resumeWithQueue,
  restored: { type: 'restored' },
} as const satisfies Record<string, HookEvent>;

const QUIET = {
  queued: 'ignored',
  none: 'ignored',
  begin: 'ignored',
  underWay: 'ignored',
  retry: 'ignored',
  failed: 'ignored',
  over: 'ignored',
  'over, and another waits': 'ignored',
  pause: 'ignored',
  resume: 'ignored',
  'resume, and one waits': 'ignored',
  restored: 'ignored',
} as const;

const TABLE: Table<Row, keyof typeof EVENTS> = {
  idle: { ...QUIET, queued: { to: 'due' }, pause: { to: 'paused' } },
  due: {
    ...QUIET,
    queued: { to: 'due' },
    none: { to: 'idle' },
    begin: { to: 'sending' },
    pause: { to: 'paused' },
  },
  sending: {
    ...QUIET,
    underWay: { to: 'sending' },
    failed: { to: 'backing-off' },
    over: { to: 'idle' },
    'over, and another waits': { to: 'due' },
    pause: { to: 'sending' },
    restored: { to: 'backing-off' },
  },
  'sending and paused': {
    ...QUIET,
    underWay: { to: 'sending' },
    failed: { to: 'paused' },
    over: { to: 'paused' },
    'over, and another waits': { to: 'paused' },
    pause: { to: 'sending' },
    resume: { to: 'sending' },
    'resume, and one waits': { to: 'sending' },
    restored: { to: 'paused' },
  },
  'backing-off': {
    ...QUIET,
    retry: { to: 'sending' },
    pause: { to: 'paused' },
  },
  paused: {
    ...QUIET,
    resume: { to: 'idle' },
    'resume, and one waits': { to: 'due' },
  },
  'paused with a delivery': {
    ...QUIET,
    resume: { to: 'backing-off' },
    'resume, and one waits': { to: 'backing-off' },
  },
};

testTable({
  what: 'a hook',
  machine: hookMachine,
  table: TABLE,
  transient: ['settling'],
  stateOf: (row) => leafOf(hookAt(row).getSnapshot().value),
  effects: (row) => outcomes(EVENTS, () => hookAt(row)),
});

for (const row of ROWS) {
  test(`a hook stored in ${row} comes back unchanged`, () => {
    const before = hookAt(row).getSnapshot();
    const after = createActor(hookMachine, { snapshot: stored(hookMachine, before), input: INPUT }).start();
    const { value, context } = after.getSnapshot();
    assert.deepEqual({ value, context }, { value: before.value, context: before.context });
  });
}

test('a hook begins a delivery only while it has none', () => {
  const other: HookEvent = { type: 'begin', deliveryId: 'dlv_2' as DeliveryId, nowMs: 3000 };
  for (const row of ROWS.filter((one) => contextAt(one).delivery !== null))
    assert.equal(hookAt(row, other).getSnapshot().context.delivery?.id, deliveryId);
});

test('a delivery that has failed is the one that is sent next', () => {
  const { delivery } = hookAt('backing-off', retry).getSnapshot().context;
  assert.deepEqual(delivery, { id: deliveryId, begunMs: 6000, retryAtMs: null });
});

test('five deliveries in a row that have died pause a hook, and one that has arrived between them does not', () => {
  const dies = Array.from({ length: MAX_DEATHS - 1 }, () => [queued, begin, died]).flat();
  const between = hookAt('idle', ...dies, queued, begin, delivered, queued, begin, died).getSnapshot();
  assert.deepEqual([hookStatus(between), between.context.deaths], ['idle', 1]);
  const paused = hookAt('idle', ...dies, queued, begin, died).getSnapshot();
  assert.equal(hookStatus(paused), 'paused');
  assert.deepEqual(paused.context.reason, {
    code: 'deliveries_died',
    message: '5 deliveries in a row have died. The last failure: It answered 500.',
  });
});

test('a delivery that lets others pass counts neither as arrived nor as dead', () => {
  const dies = [queued, begin, died];
  const { context } = hookAt('idle', ...dies, queued, begin, aside).getSnapshot();
  assert.deepEqual([context.deaths, context.delivery, context.dueMs], [1, null, 7000]);
});

test('a hook that was resumed may lose five deliveries again', () => {
  const dies = Array.from({ length: MAX_DEATHS }, () => [queued, begin, died]).flat();
  const { context } = hookAt('idle', ...dies, resume).getSnapshot();
  assert.deepEqual([context.deaths, context.reason, context.isPaused], [0, null, false]);
});

test('a hook that is paused while it sends is paused afterwards', () => {
  for (const end of [delivered, failed])
    assert.equal(hookStatus(hookAt('sending and paused', end).getSnapshot()), 'paused');
});

test('a hook that is resumed sends the delivery that had failed at once', () => {
  assert.equal(hookAttentionMs(hookAt('paused with a delivery', resume).getSnapshot().context), 8000);
});

test('a hook that is resumed while it still sends goes on with its request', () => {
  const { context } = hookAt('sending and paused', resume).getSnapshot();
  assert.deepEqual([context.isPaused, context.delivery?.retryAtMs], [false, null]);
});

test('a hook that was sending when its process died sends again at once', () => {
  const { context } = hookAt('sending', { type: 'restored' }).getSnapshot();
  assert.deepEqual([context.delivery?.id, hookAttentionMs(context)], [deliveryId, 2000]);
});

test('a hook needs attention when a delivery waits, at the next attempt, and when a request takes too long', () => {
  assert.deepEqual(
    ROWS.map((row) => [row, hookAttentionMs(contextAt(row))]),
    [
      ['idle', null],
      ['due', 1000],
      ['sending', 77_000],
      ['sending and paused', 77_000],
      ['backing-off', 5000],
      ['paused', null],
      ['paused with a delivery', null],
    ],
  );
});

test('each state of a hook has a status', () => {
  assert.deepEqual(
    ROWS.map((row) => hookStatus(hookAt(row).getSnapshot())),
    ['idle', 'due', 'sending', 'sending', 'backing-off', 'paused', 'paused'],
  );
});

const INPUT = { workspaceId: 'ws_1' as WorkspaceId, hookId: 'hook_1' as HookId, isPaused: false };

function hookAt(row: Row, ...further: readonly HookEvent[]) {
  const hook = createActor(hookMachine, { input: INPUT }).start();
  for (const event of [...WAY[row], ...further]) hook.send(event);
  return hook;
}

function contextAt(row: Row): HookContext {
  return hookAt(row).getSnapshot().context;
}
