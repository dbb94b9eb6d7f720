/** The clock of an index by time: its timer, and the order in which objects are attended to. The time is virtual. */
// own process: it sets the clock
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { newId } from '#src/base/ids.ts';
import { PlaceClock } from '#src/runtime/homes/place-clock.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import { SYSTEM } from '#storage/keys.ts';
import { slotText, timedPlaceOf } from '#storage/lists/timed-places.ts';
import { jobPlaces } from '#storage/records/jobs.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const START = Date.UTC(2027, 0, 1);
const HOUR_MS = 3_600_000;
const WORKSPACE = 'ws_1';
const SLOT = slotOf(WORKSPACE);

test('10,000 objects at rest cost one timer a minute, and nothing is attended to', async (t) => {
  const { clock, attended } = await clockOf(
    t,
    Array.from({ length: 10_000 }, (_, i) => START + HOUR_MS + i),
  );
  const timers = t.mock.method(globalThis, 'setTimeout');
  const ofMinutes = () => timers.mock.calls.filter(({ arguments: [, ms] }) => ms === 60_000).length;
  clock.look();
  assert.equal(ofMinutes(), 1);
  for (let minute = 1; minute < 60; minute++) t.mock.timers.tick(60_000);
  t.mock.timers.tick(59_999);
  assert.deepEqual([attended.length, ofMinutes()], [0, 60]);
});

test('objects are attended to once they are due, in the order of their times', async (t) => {
  const { clock, attended, store } = await clockOf(t, [START + 3000, START + 1000, START + 2000]);
  clock.look();
  for (const expected of [1, 2, 3]) {
    t.mock.timers.tick(1000);
    await store.durable();
    assert.deepEqual(
      attended.map(({ ms }) => ms - START),
      [1000, 2000, 3000].slice(0, expected),
    );
  }
});

test('a clock that is set forward is noticed within a minute', async (t) => {
  const { clock, attended } = await clockOf(t, [START + HOUR_MS]);
  clock.look();
  t.mock.timers.setTime(START + 2 * HOUR_MS);
  t.mock.timers.tick(60_000);
  assert.equal(attended.length, 1);
});

test('an object that is due by a clock that was set forward is attended to at once', async (t) => {
  const { clock, attended, move, ids } = await clockOf(t, [START + HOUR_MS]);
  clock.look();
  t.mock.timers.setTime(START + 2 * HOUR_MS);
  const timers = t.mock.method(globalThis, 'setTimeout');
  for (let moves = 0; moves < 3; moves++) await move(ids[0] ?? '', START + HOUR_MS + moves);
  assert.deepEqual(
    timers.mock.calls.map(({ arguments: [, ms] }) => ms),
    [0],
    'further moves do not put the timer off',
  );
  t.mock.timers.tick(1);
  assert.equal(attended.length, 1);
});

test('a clock that is set back attends to no object before its time', async (t) => {
  const { clock, attended } = await clockOf(t, [START + 10_000]);
  clock.look();
  t.mock.timers.tick(9000);
  t.mock.timers.setTime(START - HOUR_MS);
  t.mock.timers.tick(HOUR_MS);
  assert.equal(attended.length, 0);
  t.mock.timers.tick(60_000);
  assert.equal(attended.length, 1);
});

test('an object that cannot be attended to is tried again after pauses that double, and holds up no other', async (t) => {
  const tries: number[] = [];
  const { clock, attended, errors, store } = await clockOf(t, [START + 1000, START + 2000], (ms) => {
    if (ms !== START + 1000) return;
    tries.push((Date.now() - START) / 1000);
    if (tries.length <= 10) throw new Error(`broken ${tries.length}`);
  });
  clock.look();
  for (let s = 0; s < 2000; s++) {
    t.mock.timers.tick(1000);
    await store.durable();
  }
  assert.deepEqual(tries, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 812]);
  assert.deepEqual(
    attended.map(({ ms }) => ms - START),
    [2000, 1000],
  );
  assert.equal(errors.length, 1, 'failures of one kind are logged once');
});

test('200 objects that cannot be attended to do not hide a later one, and are logged once', async (t) => {
  const broken = Array.from({ length: 200 }, () => START + 1000);
  const { clock, attended, errors, store } = await clockOf(t, [...broken, START + 2000], (ms) => {
    if (ms === START + 1000) throw new Error('broken');
  });
  clock.look();
  for (let step = 0; step < 100 && attended.length === 0; step++) {
    t.mock.timers.tick(100);
    await store.durable();
  }
  assert.deepEqual([attended.map(({ ms }) => ms - START), errors.length], [[2000], 1]);
});

test('the overdue time is that of the earliest object that is due', async (t) => {
  const { clock, attended, store } = await clockOf(t, [START + 1000, START + 5000]);
  clock.look();
  assert.equal(clock.overdueMs(START + 1000), 0, 'an object that is due now is not late');
  assert.equal(clock.overdueMs(START + 1700), 700);
  t.mock.timers.tick(1000);
  await store.durable();
  assert.deepEqual([attended.length, clock.overdueMs(START + 1700)], [1, 0]);
});

test('an object that cannot be attended to stays overdue until it has another place', async (t) => {
  const { clock, store, leave, ids } = await clockOf(t, [START + 1000], () => {
    throw new Error('broken');
  });
  clock.look();
  t.mock.timers.tick(1000);
  await store.durable();
  assert.equal(clock.overdueMs(START + 61_000), 60_000);
  leave(ids[0] ?? '');
  await store.durable();
  t.mock.timers.tick(1000); // the clock looks again
  await store.durable();
  assert.equal(clock.overdueMs(START + 61_000), 0);
});

interface Attended {
  readonly id: string;
  readonly ms: number;
}

async function clockOf(t: TestContext, times: readonly number[], attend: (ms: number) => void = () => {}) {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: START });
  const { store } = await temporaryStore(t);
  const slot = slotText(SLOT);
  const timesOf = new Map(times.map((ms) => [newId<string>('job'), ms]));
  const placeOf = new Map([...timesOf].map(([id, ms]) => [id, timedPlaceOf(ms, WORKSPACE, id)]));
  store.write((tx) => {
    for (const place of placeOf.values()) tx.mark(jobPlaces, SYSTEM, slot, place);
  });
  await store.durable();
  /** Takes an object from the index, as one that needs no attention any more. */
  const leave = (id: string) => {
    const left = placeOf.get(id);
    if (left === undefined) return null;
    placeOf.delete(id);
    store.write((tx) => tx.remove(jobPlaces, SYSTEM, slot, left));
    return left;
  };
  const attended: Attended[] = [];
  const errors: unknown[] = [];
  const clock = new PlaceClock({
    store,
    log: { error: (...line: unknown[]) => void errors.push(line) },
    index: jobPlaces,
    isHere: () => true,
    placeOf: (_, id) => placeOf.get(id) ?? null,
    isEnding: () => false,
    attend(_, id) {
      const ms = timesOf.get(id) ?? 0;
      attend(ms);
      attended.push({ id, ms });
      leave(id);
    },
  });
  t.after(() => clock[Symbol.dispose]());
  return {
    clock,
    attended,
    errors,
    store,
    leave,
    ids: [...timesOf.keys()],
    /** Gives an object another place. Resolves when the place is stored. */
    async move(id: string, ms: number) {
      const left = leave(id);
      const place = timedPlaceOf(ms, WORKSPACE, id);
      placeOf.set(id, place);
      store.write((tx) => tx.mark(jobPlaces, SYSTEM, slot, place));
      clock.note({ slot: SLOT, ms, left });
      await store.durable();
    },
  };
}
