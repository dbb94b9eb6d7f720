/** Results that are computed from records and used again while the records stay the same. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { defineRecord, encodeRecord } from '#storage/codec.ts';
import { MAX_CACHED_BYTES, MAX_CACHED_RECORDS, RecordCache } from '#storage/record-cache.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const texts = defineRecord<string>('text', 1);
const EMPTY_RECORD_BYTES = encodeRecord(texts, 'x'.repeat(300)).byteLength - 300;

/** Returns a cache of lengths, and the texts whose lengths were computed. */
function lengths() {
  const computed: string[] = [];
  const cache = new RecordCache(texts, (text: string) => {
    computed.push(text.slice(0, 5));
    return { length: text.length };
  });
  return { cache, computed };
}

test('a result is computed once for a record that stays the same, and anew after each change', async (t) => {
  const { store } = await temporaryStore(t);
  const { cache, computed } = lengths();
  store.write((tx) => tx.put(texts, 'one', 'ws_1', 't1'));
  await store.durable();
  assert.deepEqual(
    [1, 2].map(() => store.compute(cache, 'ws_1', 't1')?.length),
    [3, 3],
  );
  assert.deepEqual(computed, ['one']);
  store.write((tx) => tx.put(texts, 'three', 'ws_1', 't1'));
  assert.equal(store.compute(cache, 'ws_1', 't1')?.length, 5); // before the commit
  await store.durable();
  assert.equal(store.compute(cache, 'ws_1', 't1')?.length, 5);
  assert.deepEqual(computed, ['one', 'three']);
  store.write((tx) => tx.remove(texts, 'ws_1', 't1'));
  assert.equal(store.compute(cache, 'ws_1', 't1'), undefined);
});

test('records with one id in two workspaces have results of their own', async (t) => {
  const { store } = await temporaryStore(t);
  const { cache } = lengths();
  store.write((tx) => {
    tx.put(texts, 'one', 'ws_1', 't1');
    tx.put(texts, 'three', 'ws_2', 't1');
  });
  const read = () => ['ws_1', 'ws_2'].map((workspace) => store.compute(cache, workspace, 't1')?.length);
  assert.deepEqual(
    [read(), read()],
    [
      [3, 5],
      [3, 5],
    ],
  );
});

test('the result for a record up to the limit of bytes is kept, and for one byte more it is not', async (t) => {
  const { store } = await temporaryStore(t);
  const { cache, computed } = lengths();
  const longest = 'a'.repeat(MAX_CACHED_BYTES - EMPTY_RECORD_BYTES);
  for (const [text, times] of [
    [longest, 1],
    [`${longest}b`, 2],
  ] as const) {
    computed.length = 0;
    store.write((tx) => tx.put(texts, text, 'ws_1', 't1'));
    for (let i = 0; i < 2; i++) assert.equal(store.compute(cache, 'ws_1', 't1')?.length, text.length);
    assert.equal(computed.length, times);
  }
});

test('the cache keeps results up to its limit, and one more takes the place of the oldest', async (t) => {
  const { store } = await temporaryStore(t);
  const { cache, computed } = lengths();
  const ids = Array.from({ length: MAX_CACHED_RECORDS + 1 }, (_, i) => `t${i}`);
  store.write((tx) => {
    for (const id of ids) tx.put(texts, id, 'ws_1', id);
  });
  await store.durable();
  const readAll = (some: readonly string[]) => {
    computed.length = 0;
    for (const id of some) store.compute(cache, 'ws_1', id);
    return computed.length;
  };
  assert.equal(readAll(ids.slice(0, -1)), MAX_CACHED_RECORDS);
  assert.equal(readAll(ids.slice(0, -1)), 0);
  assert.equal(readAll(ids.slice(-1)), 1);
  assert.equal(readAll(ids.slice(1)), 0);
  assert.equal(readAll(ids.slice(0, 1)), 1);
});
