import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CallWindow, MAX_CALL_BYTES, MAX_CALLS } from '#src/confined/processes/kernel/call-window.ts';

const ANSWER = [Buffer.from('{}')];

/** A window whose kernel takes bytes only when the test says so. */
function newWindow() {
  const sender = { queuedBytes: 0, sendCounted: () => {} };
  const holds: boolean[] = [];
  const window = new CallWindow(sender, (isHeld) => holds.push(isHeld));
  return { sender, holds, window };
}

test('a kernel with too many bytes of unanswered questions is held until enough questions are answered', () => {
  const { holds, window } = newWindow();
  window.begin(1, MAX_CALL_BYTES);
  assert.deepEqual(holds, []);
  window.begin(2, 1);
  window.begin(3, 1);
  assert.deepEqual(holds, [true]);
  window.answer(1, ANSWER);
  assert.deepEqual([holds, window.questionBytes], [[true, false], 2]);
});

test('a kernel is held while it does not take its answers', () => {
  const { sender, holds, window } = newWindow();
  window.begin(1, 0);
  sender.queuedBytes = MAX_CALL_BYTES + 1;
  window.answer(1, ANSWER);
  assert.deepEqual(holds, [true]);
  sender.queuedBytes = 0;
  window.settle();
  assert.deepEqual(holds, [true, false]);
});

test('a kernel is held while too many of its calls are open, with any numbers of the calls', () => {
  const { holds, window } = newWindow();
  for (let count = 0; count < MAX_CALLS; count++) window.begin(7, 1);
  assert.deepEqual(holds, [true]);
  window.answer(7, ANSWER);
  assert.deepEqual([holds, window.questionBytes], [[true, false], MAX_CALLS - 1]);
  for (let count = 0; count < 2 * MAX_CALLS; count++) window.answer(7, ANSWER);
  assert.equal(window.questionBytes, 0);
  for (let count = 0; count < MAX_CALLS - 1; count++) window.begin(8, 1);
  assert.deepEqual(holds, [true, false]);
});

test('after an interrupt there is room for the end of the command, in addition to the earlier questions', () => {
  const { holds, window } = newWindow();
  window.begin(1, MAX_CALL_BYTES + 1);
  window.widen(true);
  window.begin(2, MAX_CALL_BYTES);
  assert.deepEqual(holds, [true, false, true]);
  window.answer(1, ANSWER);
  window.answer(2, ANSWER);
  window.widen(false);
  assert.deepEqual(holds, [true, false, true, false]);
});
