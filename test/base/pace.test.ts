import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Pace } from '#src/base/time/pace.ts';
import { eventually } from '#test/support/processes.ts';

const SHORT_MS = 5;
const LONG_MS = 60_000;

test('the first of many requests is carried out at once, and the next only after the gap', async () => {
  const counts = { short: 0, long: 0 };
  using short = new Pace(SHORT_MS, () => void counts.short++);
  using long = new Pace(LONG_MS, () => void counts.long++);
  const askOften = () => {
    for (let n = 0; n < 10; n++) for (const pace of [short, long]) pace.ask();
  };
  askOften();
  assert.deepEqual(counts, { short: 0, long: 0 }, 'what else happens in this turn belongs to it');
  await nextTurn();
  assert.deepEqual(counts, { short: 1, long: 1 });
  askOften();
  await eventually('it was done again after a short gap', () => counts.short === 2);
  assert.equal(counts.long, 1);
});

test('each call waits for the end of the previous call', async () => {
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

test('a hurried call skips the gap, and does nothing if no call was requested', async () => {
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
