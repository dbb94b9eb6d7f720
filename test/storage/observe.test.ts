import assert from 'node:assert/strict';
import test from 'node:test';
import { runRecords } from '#storage/records/runs.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const RUN = { sessionId: 'nb_1', kind: 'notebook', status: 'running', document: new Uint8Array() } as const;

test('a read reports whether it has seen data that are not on disk yet', async (t) => {
  const { store } = await temporaryStore(t);
  const look = (id: string) => store.observe(() => store.get(runRecords, 'ws_1', id)?.status);
  store.write((tx) => tx.put(runRecords, RUN, 'ws_1', 'run_1'));
  const seen = look('run_1');
  assert.equal(seen.result, 'running');
  assert.ok(seen.uncommitted instanceof Promise);
  assert.deepEqual(look('run_2'), { result: undefined, uncommitted: undefined });
  await seen.uncommitted;
  assert.deepEqual(look('run_1'), { result: 'running', uncommitted: undefined });
});

test('a read inside another read counts for both', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(runRecords, RUN, 'ws_1', 'run_1'));
  const outer = store.observe(() => store.observe(() => store.get(runRecords, 'ws_1', 'run_1')).result);
  assert.ok(outer.uncommitted instanceof Promise);
  assert.equal(store.observe(() => 1).uncommitted, undefined);
});
