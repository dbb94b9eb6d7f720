import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandSlot } from '#src/confined/processes/kernel/command-slot.ts';
import type { BridgeDone } from '#src/confined/processes/kernel/messages.ts';

function done(seq: number | null, interrupted = false): BridgeDone {
  return { op: 'bridge-done', seq, type: 'T', error: null, interrupted, cells: new Map() };
}

function newSlot() {
  const log: string[] = [];
  const unsent: (() => void)[] = [];
  const slot = new CommandSlot({
    sender: {
      send(frame, sent) {
        if (frame instanceof Promise) throw new Error('A short command is made at once.');
        const bytes = Buffer.concat(frame);
        log.push(
          bytes[4] === 4 ? `interrupt ${bytes.readUInt32LE(5)}` : JSON.parse(bytes.toString('utf8', 5)).type,
        );
        if (sent !== undefined) unsent.push(sent);
      },
    },
    signal: () => log.push('SIGINT'),
  });
  /** The kernel can read all frames. */
  const deliver = () => {
    for (const sent of unsent.splice(0)) sent();
  };
  return { slot, log, deliver };
}

test('a second command throws until the first has ended, because it is a mistake of the caller', () => {
  const { slot, log } = newSlot();
  const seq = slot.give('execute-cells', {});
  assert.throws(
    () => slot.give('edit-cells', {}),
    /A kernel has one command in flight\. Broken by: edit-cells/,
  );
  assert.ok(slot.settle(done(seq)));
  slot.give('edit-cells', {});
  assert.deepEqual(log, ['execute-cells', 'edit-cells']);
});

test('only an end with the sequence number of the command in flight ends the command', () => {
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

test('an interrupt names its command before its signal, and is sent once even after repeated requests', () => {
  const { slot, log, deliver } = newSlot();
  slot.settle(done(slot.give('execute-cells', {})));
  slot.give('execute-cells', {});
  assert.deepEqual([slot.interrupt(), slot.interrupt()], [true, true]);
  assert.deepEqual(log.slice(2), ['interrupt 2']);
  deliver();
  assert.deepEqual(log.slice(3), ['SIGINT']);
});

test('the command after an interrupted command is sent at once and can be interrupted, too', () => {
  const { slot, log, deliver } = newSlot();
  const seq = slot.give('execute-cells', {});
  slot.interrupt();
  deliver();
  slot.settle(done(seq, true));
  slot.give('edit-cells', {});
  slot.interrupt();
  deliver();
  assert.deepEqual(log, ['execute-cells', 'interrupt 1', 'SIGINT', 'edit-cells', 'interrupt 2', 'SIGINT']);
});
