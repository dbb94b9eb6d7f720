import assert from 'node:assert/strict';
import test from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { StoredUsageCounter } from '#src/operate/operators/stored-usage.ts';
import type { StoreKey } from '#storage/keys.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const RECORDS = 1_200;

/** A store of runs with ten bytes each. `reads` has how many records each turn of the event loop has read. */
function storeOfRuns() {
  const reads: number[] = [];
  const listSizes = function* (partition: string, after: StoreKey | undefined) {
    reads.push(0);
    for (let n = Number(after?.[2] ?? -1) + 1; n < RECORDS; n++) {
      reads[reads.length - 1]!++;
      yield { key: [partition, 'run', String(n)] as StoreKey, bytes: 10 };
    }
  };
  return { reads, store: { listSizes } };
}

test('the records of a workspace are counted in slices, and the next view of the count shows it again', async () => {
  const { store, reads } = storeOfRuns();
  const counter = new StoredUsageCounter(store);
  const usage = await counter.of(WORKSPACE);
  assert.deepEqual([usage.records, usage.bytes, usage.runs, usage.complete], [RECORDS, 12_000, 12_000, true]);
  assert.deepEqual(reads, [500, 500, 200, 0]);
  assert.equal(await counter.of(WORKSPACE), usage);
});

test('a view does not wait for a long count: it shows the part counted so far, and later the whole', async () => {
  let isOver = false;
  const listSizes = function* (partition: string) {
    while (!isOver) yield { key: [partition, 'run', 'run_1'] as StoreKey, bytes: 10 };
  };
  const counter = new StoredUsageCounter({ listSizes }, 0);
  const first = await counter.of(WORKSPACE);
  assert.deepEqual([first.complete, first.records >= 500, first.runs], [false, true, first.records * 10]);
  const second = await counter.of(WORKSPACE);
  assert.ok(second.records > first.records, 'it is the same count');
  isOver = true;
  let last = await counter.of(WORKSPACE);
  while (!last.complete) last = await counter.of(WORKSPACE);
  assert.ok(last.records >= second.records);
});
