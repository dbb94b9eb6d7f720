import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Pace } from '#src/core/pace.ts';
import { eventually } from '#test/support/processes.ts';

const GAP_MS = 50;
const LONG_MS = 60_000;

test('what is asked for often is done at once, and then once in each gap', async () => {
  const actedAtMs: number[] = [];
  using pace = new Pace(GAP_MS, () => void actedAtMs.push(performance.now()));
  for (let n = 0; n < 10; n++) pace.ask();
  assert.deepEqual(actedAtMs, [], 'what else happens in this turn belongs to it');
  await nextTurn();
  assert.equal(actedAtMs.length, 1);
  for (let n = 0; n < 10; n++) pace.ask();
  await eventually('it was done again', () => actedAtMs.length === 2);
  assert.ok(actedAtMs[1]! - actedAtMs[0]! >= GAP_MS - 1);
});

test('it is not done again before the last time is over', async () => {
  let finish = () => {};
  let count = 0;
  using pace = new Pace(0, () => {
    count++;
    return new Promise<void>((resolve) => {
      finish = resolve;
    });
  });
  pace.ask();
  await nextTurn();
  pace.ask();
  pace.hurry();
  await nextTurn();
  assert.equal(count, 1);
  finish();
  await eventually('it was done again', () => count === 2);
});

test('a hurry does without the gap, and does nothing that was not asked for', async () => {
  let count = 0;
  using pace = new Pace(LONG_MS, () => void count++);
  pace.hurry();
  pace.ask();
  await nextTurn();
  pace.ask();
  pace.hurry();
  assert.equal(count, 2);
  pace[Symbol.dispose]();
  pace.ask();
  pace.hurry();
  await nextTurn();
  assert.equal(count, 2, 'it is over');
});
