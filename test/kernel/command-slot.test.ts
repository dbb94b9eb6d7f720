import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { CommandSlot } from '#src/kernel/command-slot.ts';
import type { BridgeDone, KernelMessage } from '#src/kernel/messages.ts';

const BEGUN: KernelMessage = { op: 'execution', executionId: 'e', cellId: 'a', runId: 'r', phase: 'running' };

function done(seq: number | null, interrupted = false): BridgeDone {
  return { op: 'bridge-done', seq, token: null, type: 'T', error: null, interrupted, cells: new Map() };
}

function newSlot() {
  const log: string[] = [];
  const slot = new CommandSlot({
    send: (frame) => log.push(JSON.parse(frame.toString('utf8', 5)).type),
    interrupt: () => log.push('SIGINT'),
  });
  return { slot, log };
}

test('a second command is a mistake of the caller until the first has ended', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  assert.throws(() => slot.give('edit-cells', {}), /edit-cells was given while command 1 is in flight/);
  assert.ok(slot.settle(done(seq)));
  slot.give('edit-cells', {});
  assert.deepEqual(log, ['execute-cells', 'edit-cells']);
});

test('only the seq in flight ends the command', () => {
  const { slot } = newSlot();
  const seq = slot.give('execute-cells', {});
  assert.deepEqual(
    [done(null), done(seq + 1), done(0)].map((one) => slot.settle(one)),
    [false, false, false],
  );
  assert.equal(slot.inFlight, seq);
  assert.deepEqual([slot.settle(done(seq)), slot.settle(done(seq)), slot.inFlight], [true, false, null]);
});

test('with nothing in flight there is nothing to interrupt', () => {
  const { slot, log } = newSlot();
  assert.equal(slot.interrupt(), false);
  assert.deepEqual(log, []);
});

test('an interrupt waits for the first cell to begin, and is sent once however often it is asked for', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  assert.equal(slot.interrupt(), true);
  assert.deepEqual(log, ['execute-cells']);
  slot.notice(BEGUN);
  slot.notice(BEGUN);
  slot.interrupt();
  assert.deepEqual(log, ['execute-cells', 'SIGINT']);
  slot.settle(done(seq, true));
});

test('a command that ends before it could be interrupted takes the wish along', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  slot.interrupt();
  slot.settle(done(seq));
  slot.give('execute-cells', {});
  slot.notice(BEGUN);
  assert.deepEqual(log, ['execute-cells', 'execute-cells']);
});

test('an interrupt that ended its command does not delay the next one', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  slot.notice(BEGUN);
  slot.interrupt();
  slot.settle(done(seq, true));
  slot.give('edit-cells', {});
  assert.deepEqual(log, ['execute-cells', 'SIGINT', 'edit-cells']);
});

test('an interrupt that came too late holds the next command back until it has landed', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  slot.notice(BEGUN);
  slot.interrupt();
  slot.settle(done(seq));
  slot.give('invoke-function', {});
  slot.interrupt();
  assert.deepEqual(log, ['execute-cells', 'SIGINT']);
  slot.landed();
  assert.deepEqual(log, ['execute-cells', 'SIGINT', 'invoke-function', 'SIGINT']);
  slot.dispose();
});

test('a host that never confirms its signals holds the next command back for 50 ms at most', (t) => {
  mock.timers.enable({ apis: ['setTimeout'] });
  t.after(() => mock.timers.reset());
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  slot.notice(BEGUN);
  slot.interrupt();
  slot.settle(done(seq));
  slot.give('edit-cells', {});
  mock.timers.tick(50);
  assert.deepEqual(log, ['execute-cells', 'SIGINT', 'edit-cells']);
});
