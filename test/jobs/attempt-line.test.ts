/** The line of attempts that wait to begin: its order, its width, and owners for whom there is no room. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { AttemptLine, MAX_IN_PROGRESS } from '#src/jobs/attempt-line.ts';
import { eventually } from '#test/support/processes.ts';

test('a bounded number of attempts is in progress, and the others begin in the order of their instants', async (t) => {
  const { line, begun, end } = lineOf(t);
  for (const dueMs of [5, 3, 9, 1, 7, 8, 2, 6, 4, 11, 10]) line.add(attempt(dueMs));
  await haveBegun(begun, 8);
  assert.deepEqual(begun, [1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual([MAX_IN_PROGRESS, line.length], [8, 3]);
  end(4);
  await haveBegun(begun, 9);
  assert.deepEqual(begun.slice(8), [9]);
  end(1);
  end(2);
  await haveBegun(begun, 11);
  assert.deepEqual(begun.slice(8), [9, 10, 11]);

  function attempt(dueMs: number) {
    return attemptOf(dueMs, 'a', begun, end);
  }
});

test('an attempt does not begin in the turn that adds it, and one that was taken out does not begin', async (t) => {
  const { line, begun, end } = lineOf(t);
  const [first, second] = [attemptOf(1, 'a', begun, end), attemptOf(2, 'a', begun, end)];
  line.add(first);
  line.add(second);
  assert.deepEqual(begun, []);
  assert.equal(line.remove(first), true);
  await haveBegun(begun, 1);
  assert.deepEqual(begun, [2]);
  assert.equal(line.remove(second), false);
});

test('an owner for whom there is no room holds up nobody else, and is tried again', async (t) => {
  const { line, begun, end } = lineOf(t);
  let nowMs = 1000;
  t.mock.method(performance, 'now', () => nowMs);
  let hasRoom = false;
  const full = (dueMs: number) => ({
    dueMs,
    workspaceId: 'one',
    holder: 'full',
    async carryOut() {
      begun.push(dueMs);
      if (!hasRoom) line.add(full(dueMs));
      return hasRoom;
    },
  });
  for (let dueMs = 0; dueMs < MAX_IN_PROGRESS; dueMs++) line.add(attemptOf(dueMs + 10, 'a', begun, end));
  await haveBegun(begun, MAX_IN_PROGRESS);
  line.add(full(1));
  line.add(full(2));
  line.add(attemptOf(30, 'b', begun, end));
  end(10);
  await haveBegun(begun, MAX_IN_PROGRESS + 2);
  assert.deepEqual(begun.slice(MAX_IN_PROGRESS), [1, 30], 'the second attempt of the owner was not tried');
  hasRoom = true;
  nowMs += 1000;
  end(11);
  await haveBegun(begun, MAX_IN_PROGRESS + 4);
  assert.deepEqual(begun.slice(MAX_IN_PROGRESS), [1, 30, 1, 2]);
});

test('a workspace whose attempts have no end stops nobody else: each other workspace has one attempt in progress', async (t) => {
  const { line, begun, end } = lineOf(t);
  for (let dueMs = 0; dueMs < 20; dueMs++) line.add(attemptOf(dueMs, 'endless', begun, end));
  await haveBegun(begun, MAX_IN_PROGRESS);
  for (const dueMs of [31, 32]) line.add(attemptOf(dueMs, 'b', begun, end, 'two'));
  line.add(attemptOf(41, 'c', begun, end, 'three'));
  await haveBegun(begun, MAX_IN_PROGRESS + 2);
  assert.deepEqual(begun.slice(MAX_IN_PROGRESS), [31, 41]);
  end(31);
  await haveBegun(begun, MAX_IN_PROGRESS + 3);
  end(0);
  await haveBegun(begun, MAX_IN_PROGRESS + 3);
  assert.deepEqual(begun.slice(MAX_IN_PROGRESS + 2), [32], 'nine are in progress, so no further one begins');
  for (const dueMs of [32, 41]) end(dueMs);
  await haveBegun(begun, MAX_IN_PROGRESS + 4);
  assert.deepEqual(begun.slice(MAX_IN_PROGRESS + 3), [8]);
});

/** Resolves once `count` attempts have begun, and no further one begins in the next turns. */
async function haveBegun(begun: readonly number[], count: number): Promise<void> {
  await eventually(`${count} attempts have begun`, () => begun.length >= count);
  for (let turn = 0; turn < 3; turn++) await nextTurn();
}

function lineOf(t: TestContext) {
  const line = new AttemptLine();
  t.after(() => line[Symbol.dispose]());
  const begun: number[] = [];
  const ends = new Map<number, () => void>();
  /** Ends the attempt that was due at `dueMs`. */
  const end = Object.assign((dueMs: number) => ends.get(dueMs)?.(), { of: ends });
  return { line, begun, end };
}

function attemptOf(
  dueMs: number,
  holder: string,
  begun: number[],
  end: { readonly of: Map<number, () => void> },
  workspaceId = 'one',
) {
  return {
    dueMs,
    workspaceId,
    holder,
    carryOut() {
      begun.push(dueMs);
      return new Promise<boolean>((resolve) => end.of.set(dueMs, () => resolve(true)));
    },
  };
}
