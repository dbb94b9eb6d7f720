import assert from 'node:assert/strict';
import test from 'node:test';
import type { Kernel } from '#src/confined/processes/kernel/kernel.ts';
import type { WorkPlan } from '#src/notebook/open/work-plan.ts';
import { WorkSlot } from '#src/notebook/open/work-slot.ts';
import { done } from '../kernel-messages.ts';

const FIRST = { kind: 'run', id: 'run_1' } as const;
const SECOND = { kind: 'code', id: 'req_2' } as const;
const COMPLETED = { status: 'completed', failure: null } as const;
const LOST = { status: 'failed', failure: { code: 'kernel_exited', message: 'gone' } } as const;

test('messages belong to work from its first command until the work or its kernel has ended', () => {
  const { slot, plan, kernel, log } = slotWithPlan([1]);
  const follow = () => slot.follow({ op: 'variables', variables: [] });
  slot.offer(FIRST, plan, () => undefined);
  follow();
  assert.equal(slot.runId, null, 'its kernel has not been asked');
  assert.equal(slot.begin(FIRST, kernel), undefined);
  follow();
  assert.equal(slot.runId, 'run_1');
  assert.deepEqual(slot.advance(done({}, { seq: 1 }), kernel), { workId: 'run_1', end: COMPLETED });
  follow();
  assert.equal(slot.runId, 'run_1', 'what is said after its last command still belongs to it');
  slot.leave();
  follow();
  assert.equal(slot.runId, null);
  slot.end(FIRST, LOST);
  assert.deepEqual(log, ['step 1', 'follow', 'conclude', 'follow', 'ended failed']);
});

test('the end of another command does not end the work', () => {
  const { slot, plan, kernel, log } = slotWithPlan([7]);
  assert.equal(slot.advance(done({}, { seq: 7 }), kernel), undefined);
  slot.offer(FIRST, plan, () => undefined);
  assert.equal(slot.advance(done({}, { seq: 7 }), kernel), undefined, 'it is not begun');
  assert.equal(slot.begin(FIRST, kernel), undefined);
  assert.equal(slot.advance(done({}, { seq: 6 }), kernel), undefined);
  slot.advance(done({}, { seq: 7 }), kernel);
  assert.equal(slot.advance(done({}, { seq: 7 }), kernel), undefined, 'it is concluded once');
  assert.deepEqual(log, ['step 7', 'conclude']);
});

test('work that fails at one command gets no further commands', () => {
  const { slot, plan, kernel, log } = slotWithPlan([1, 2]);
  slot.offer(FIRST, plan, () => undefined);
  assert.equal(slot.begin(FIRST, kernel), undefined);
  assert.notEqual(slot.advance(done({}, { seq: 1, error: 'no such cell' }), kernel), undefined);
  assert.deepEqual(log, ['step 1', 'conclude']);
});

test('refused work does not affect the work in flight', () => {
  const { slot, plan, kernel, log } = slotWithPlan([1]);
  slot.offer(FIRST, plan, () => slot.begin(FIRST, kernel));
  const refuse = () => {
    throw new Error('busy');
  };
  assert.throws(() => slot.offer(SECOND, slotWithPlan([2]).plan, refuse), /busy/);
  assert.deepEqual(slot.current, FIRST);
  assert.deepEqual(slot.advance(done({}, { seq: 1 }), kernel), { workId: 'run_1', end: COMPLETED });
  slot.end(FIRST, COMPLETED);
  assert.equal(slot.current, undefined);
  assert.deepEqual(log, ['step 1', 'conclude', 'ended completed']);
});

test('work is ended once, and only by its own end', () => {
  const { slot, plan, kernel, log } = slotWithPlan([1]);
  slot.offer(FIRST, plan, () => undefined);
  slot.end(SECOND, LOST);
  assert.throws(() => slot.begin(SECOND, kernel), /Work begins after it was offered\. Broken by: req_2/);
  slot.end(FIRST, LOST);
  slot.end(FIRST, COMPLETED);
  assert.deepEqual(log, ['ended failed']);
});

test('a cancel reaches only work that is running in its kernel', () => {
  const { slot, plan, kernel, log } = slotWithPlan([1]);
  slot.requestCancel();
  slot.offer(FIRST, plan, () => undefined);
  slot.requestCancel();
  assert.equal(slot.begin(FIRST, kernel), undefined);
  slot.requestCancel();
  slot.leave();
  slot.requestCancel();
  assert.deepEqual(log, ['step 1', 'cancel']);
});

test('held work gets its first command when it continues, and no command when it was cancelled or has ended', async () => {
  const going = slotWithPlan([1]);
  const held = { ...going.plan, heldUntil: () => Promise.resolve() };
  going.slot.offer(FIRST, held, () => undefined);
  await going.slot.begin(FIRST, going.kernel);
  assert.deepEqual(going.log, []);
  assert.equal(going.slot.goOn(SECOND, going.kernel), undefined);
  assert.equal(going.slot.goOn(FIRST, going.kernel), undefined);
  assert.equal(going.slot.goOn(FIRST, going.kernel), undefined, 'it is not held any more');
  assert.deepEqual(going.log, ['step 1']);

  const cancelled = slotWithPlan([1]);
  cancelled.slot.offer(FIRST, { ...cancelled.plan, heldUntil: () => Promise.resolve() }, () => undefined);
  await cancelled.slot.begin(FIRST, cancelled.kernel);
  cancelled.slot.requestCancel();
  assert.deepEqual(cancelled.slot.goOn(FIRST, cancelled.kernel), { workId: 'run_1', end: COMPLETED });
  assert.deepEqual(cancelled.log, ['cancel', 'conclude']);

  const ended = slotWithPlan([1]);
  ended.slot.offer(FIRST, { ...ended.plan, heldUntil: () => Promise.resolve() }, () => undefined);
  await ended.slot.begin(FIRST, ended.kernel);
  ended.slot.leave();
  assert.equal(ended.slot.goOn(FIRST, ended.kernel), undefined);
  assert.deepEqual(ended.log, []);
});

/** A slot, and a plan that records its calls; its commands have the given seqs. */
function slotWithPlan([first, ...others]: readonly [number, ...number[]]) {
  const log: string[] = [];
  const kernel = {} as Kernel;
  const step = (seq: number) => () => {
    log.push(`step ${seq}`);
    return seq;
  };
  const plan: WorkPlan = {
    runId: 'run_1',
    steps: [step(first), ...others.map(step)],
    follow: () => log.push('follow'),
    conclude: () => {
      log.push('conclude');
      return COMPLETED;
    },
    cancelRequested: () => log.push('cancel'),
    ended: ({ status }) => log.push(`ended ${status}`),
  };
  return { slot: new WorkSlot(), plan, kernel, log };
}
