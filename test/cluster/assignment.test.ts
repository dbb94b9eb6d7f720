/** Homes of workspaces while workers come and go, and the order of messages about them. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { ToWorker } from '#src/cluster/messages.ts';
import { Assignment, nextMove } from '#src/cluster/primary/assignment.ts';
import { Restarts } from '#src/cluster/primary/restarts.ts';
import { type Duty, WorkerWatch } from '#src/cluster/primary/watchdog.ts';
import type { WorkerProcess } from '#src/cluster/primary/worker-process.ts';
import { dealSlots, SLOTS, type SlotTable, withoutWorker } from '#src/runtime/homes/slots.ts';

const PORT = 8787;

/** Workers without processes, and the messages of the primary to each of them. */
function fleet(t: TestContext, size: number) {
  const workers = new Map<number, WorkerProcess>();
  const told = new Map<number, ToWorker[]>();
  const assignment = new Assignment(workers);
  t.after(() => assignment[Symbol.dispose]());
  const add = (number: number): WorkerProcess => {
    const messages: ToWorker[] = [];
    told.set(number, messages);
    const worker = { number, phase: 'opening', known: 0, since: 0, isRetiring: false } as WorkerProcess;
    Object.assign(worker, { send: (message: ToWorker) => messages.push(message) });
    workers.set(number, worker);
    return worker;
  };
  for (let number = 1; number <= size; number++) add(number);
  assignment.deal(PORT);
  const opsOf = (number: number) => told.get(number)!.map(({ op }) => op);
  const tableOf = (number: number) => told.get(number)!.findLast((message) => message.op === 'table')?.table;
  const end = (number: number) => {
    const worker = workers.get(number)!;
    workers.delete(number);
    assignment.ended(worker);
  };
  return { assignment, workers, add, opsOf, tableOf, told, end };
}

/** Starts the first workers and lets them serve. */
function begin({ assignment, workers }: ReturnType<typeof fleet>): void {
  for (const worker of workers.values()) assignment.joined(worker, assignment.tableFor(worker).number);
  for (const worker of workers.values()) assignment.listening(worker);
}

/**
 * Lets the second of two workers end, and another one join in its place. The first worker does not
 * know of the other one yet.
 */
function replaceSecond(cluster: ReturnType<typeof fleet>): WorkerProcess {
  begin(cluster);
  cluster.end(2);
  const heir = cluster.add(3);
  cluster.assignment.joined(heir, cluster.assignment.tableFor(heir).number);
  return heir;
}

const slotsOf = (table: SlotTable | undefined, worker: number) =>
  table!.owners.flatMap((owner, slot) => (owner === worker ? [slot] : []));

test('none of the first workers serves before all first workers answer questions', (t) => {
  const { assignment, workers, opsOf } = fleet(t, 3);
  const [one, two, three] = [...workers.values()];
  assignment.joined(one!, assignment.tableFor(one!).number);
  assignment.joined(two!, assignment.tableFor(two!).number);
  assert.deepEqual([opsOf(1), opsOf(2)], [[], []]);
  assignment.joined(three!, assignment.tableFor(three!).number);
  assert.deepEqual([opsOf(1), opsOf(2), opsOf(3)], [['admit'], ['admit'], ['admit']]);
});

test('the slots of a worker that has ended go to the others in equal parts', (t) => {
  const cluster = fleet(t, 3);
  begin(cluster);
  const before = cluster.assignment.tableFor(cluster.workers.get(1)!);
  cluster.end(2);
  const after = cluster.tableOf(1);
  assert.deepEqual(after, cluster.tableOf(3));
  assert.deepEqual(after!.workers, [1, 3]);
  assert.equal(after!.number, before.number + 1);
  assert.deepEqual([slotsOf(after, 1).length, slotsOf(after, 3).length], [SLOTS / 2, SLOTS / 2]);
  for (const slot of slotsOf(before, 1)) assert.equal(after!.owners[slot], 1, 'no slot of the living moves');
});

test('a replacement serves once all other workers know the replacement, and gets only slots that other workers release', (t) => {
  const cluster = fleet(t, 2);
  const heir = replaceSecond(cluster);
  const { assignment } = cluster;
  assert.equal(slotsOf(cluster.tableOf(1), 1).length, SLOTS);
  assert.ok(!cluster.opsOf(3).includes('admit'));
  assignment.knows(cluster.workers.get(1)!, cluster.tableOf(1)!.number);
  assert.ok(cluster.opsOf(3).includes('admit'));
  assignment.listening(heir);
  const asked = cluster.told.get(1)!.at(-1);
  assert.deepEqual(asked, { op: 'release', count: SLOTS / 2 });
  assignment.released(cluster.workers.get(1)!, cluster.tableOf(1)!.number, [5, 7]);
  assert.deepEqual(slotsOf(cluster.tableOf(3), 3), [5, 7]);
});

test('a slot released under an older table does not move', (t) => {
  const cluster = fleet(t, 2);
  const heir = replaceSecond(cluster);
  const { assignment } = cluster;
  const number = cluster.tableOf(1)!.number;
  assignment.knows(cluster.workers.get(1)!, number);
  assignment.listening(heir);
  assignment.released(cluster.workers.get(1)!, number - 1, [5, 7]);
  assert.equal(slotsOf(cluster.tableOf(3), 1).length, SLOTS);
});

test('a replaced worker leaves all its slots to its replacement', (t) => {
  const cluster = fleet(t, 2);
  begin(cluster);
  const { assignment, workers } = cluster;
  const own = slotsOf(assignment.tableFor(workers.get(1)!), 1);
  const heir = cluster.add(3);
  assignment.joined(heir, assignment.tableFor(heir).number);
  assignment.knows(workers.get(1)!, cluster.tableOf(1)!.number);
  assignment.knows(workers.get(2)!, cluster.tableOf(2)!.number);
  workers.get(1)!.isRetiring = true;
  assignment.listening(heir);
  workers.get(1)!.heir = heir;
  cluster.end(1);
  assert.deepEqual(slotsOf(cluster.tableOf(2), 3), own);
  assert.deepEqual(cluster.tableOf(2)!.workers, [2, 3]);
});

test('a replacement that ends before the replaced worker gets no slots of that worker', (t) => {
  const cluster = fleet(t, 2);
  const { assignment, workers, tableOf } = cluster;
  begin(cluster);
  const heir = cluster.add(3);
  assignment.joined(heir, assignment.tableFor(heir).number);
  assignment.listening(heir);
  workers.get(1)!.heir = heir;
  cluster.end(3);
  cluster.end(1);
  assert.equal(slotsOf(tableOf(2), 2).length, SLOTS);
});

test('when all workers have ended, the next worker gets all slots', (t) => {
  const cluster = fleet(t, 2);
  begin(cluster);
  cluster.end(1);
  cluster.end(2);
  const next = cluster.add(3);
  const table = cluster.assignment.tableFor(next);
  assert.deepEqual([table.workers, slotsOf(table, 3).length], [[3], SLOTS]);
  cluster.assignment.joined(next, table.number);
  assert.deepEqual(cluster.opsOf(3), ['admit']);
});

test('a worker that was starting when the last worker ended gets all slots once it has joined', (t) => {
  const cluster = fleet(t, 2);
  begin(cluster);
  const { assignment } = cluster;
  cluster.end(1);
  const next = cluster.add(3);
  const known = assignment.tableFor(next).number;
  cluster.end(2);
  assignment.joined(next, known);
  const table = cluster.tableOf(3);
  assert.deepEqual([table?.workers, slotsOf(table, 3).length], [[3], SLOTS]);
  assert.deepEqual(cluster.opsOf(3), ['table', 'admit']);
});

test('slots move from the worker with most slots to the worker with fewest until each has its share', () => {
  const four = dealSlots([1, 2, 3, 4]);
  assert.equal(nextMove(four, [1, 2, 3, 4], new Set()), undefined);
  const three = withoutWorker(four, 4);
  assert.deepEqual(nextMove(three, [1, 2, 3, 5], new Set()), { from: 1, to: 5, count: 22 });
  assert.deepEqual(nextMove(three, [1, 2, 3, 5], new Set([1])), { from: 3, to: 5, count: 21 });
  assert.equal(nextMove(three, [1, 2, 3, 5], new Set([1, 2, 3])), undefined);
  assert.equal(nextMove(three, [1], new Set()), undefined);
});

test('a worker that ends is replaced at once, and after growing pauses if its successors end too; a healthy successor resets the pause', () => {
  const restarts = new Restarts(() => 0);
  const ended = (livedMs: number) => restarts.next({ livedMs, hasServed: true, isAnyServing: true });
  assert.deepEqual([1, 1, 1, 1, 1, 1].map(ended), [0, 250, 1000, 2500, 5000, 5000]);
  assert.equal(ended(30_001), 0);
});

test('while no worker serves, an ended worker is replaced within a quarter of a second, even after many earlier ends', () => {
  const restarts = new Restarts(() => 0);
  const ended = (isAnyServing: boolean) => restarts.next({ livedMs: 1, hasServed: true, isAnyServing });
  assert.deepEqual(
    [true, true, true, true, true, false, false].map(ended),
    [0, 250, 1000, 2500, 5000, 250, 250],
  );
});

test('after five failed starts within a minute the server gives up; older failures do not count', () => {
  let now = 0;
  const restarts = new Restarts(() => now);
  const fail = () => restarts.next({ livedMs: 100, hasServed: false, isAnyServing: false });
  for (let times = 0; times < 4; times++) assert.notEqual(fail(), undefined);
  now = 60_000;
  for (let times = 0; times < 4; times++) assert.notEqual(fail(), undefined);
  assert.equal(fail(), undefined);
});

/**
 * Makes checks until the watchdog gives the worker up. Returns the number of checks and the reason; undefined after `most` checks.
 */
function lookUntil(
  watch: WorkerWatch,
  states: (n: number) => string,
  ticks: (n: number) => number,
  most: number,
  duty: Duty = 'serving',
) {
  for (let n = 1; n <= most; n++) {
    const fault = watch.look({ letter: states(n), ticks: ticks(n) }, duty);
    if (fault !== undefined) return [n, fault];
  }
  return undefined;
}

test('a stopped worker is killed at the second check, unless a terminal has continued it', () => {
  const stopped = lookUntil(
    new WorkerWatch(),
    () => 'T',
    () => 1,
    10,
  );
  assert.deepEqual(stopped, [2, 'it was stopped by a signal']);
  const watch = new WorkerWatch();
  const goesOn = lookUntil(
    watch,
    (n) => (n % 2 === 0 ? 'T' : 'R'),
    (n) => n,
    20,
  );
  assert.equal(goesOn, undefined);
});

test('a worker without a heartbeat is killed after 700 ms, or after 10 s while it works or waits for its disk', () => {
  const waits = lookUntil(
    new WorkerWatch(),
    () => 'S',
    () => 1,
    200,
  );
  assert.deepEqual(waits, [8, 'it does nothing']); // the first check has no earlier processor time to compare with
  for (const [letter, ticks] of [
    ['R', (n: number) => n],
    ['R', () => 1],
    ['D', () => 1],
    ['S', (n: number) => n],
  ] as const) {
    const gone = lookUntil(new WorkerWatch(), () => letter, ticks, 200);
    assert.deepEqual(gone, [100, 'it did not respond for too long']);
  }
});

test('a worker that exits may wait for the last flush of its store, and is killed after 10 s', () => {
  const exits = lookUntil(
    new WorkerWatch(),
    () => 'S',
    () => 1,
    200,
    'ending',
  );
  assert.deepEqual(exits, [100, 'it did not respond for too long']);
});

test('a worker with heartbeats is not killed, even if it waits for a long time', () => {
  const watch = new WorkerWatch();
  for (let n = 0; n < 500; n++) {
    if (n % 5 === 0) watch.beat();
    assert.equal(watch.look({ letter: 'S', ticks: 1 }, 'serving'), undefined);
  }
});

test('a worker has a minute to start', () => {
  const watch = new WorkerWatch();
  for (let n = 1; n < 600; n++) assert.equal(watch.look({ letter: 'S', ticks: 1 }, 'starting'), undefined);
  assert.equal(watch.look({ letter: 'S', ticks: 1 }, 'starting'), 'it did not start in time');
});
