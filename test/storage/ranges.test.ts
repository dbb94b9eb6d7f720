import assert from 'node:assert/strict';
import test from 'node:test';
import { defineRecord } from '#storage/codec.ts';
import type { CommittedPage } from '#storage/lists/committed-records.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const pets = defineRecord<string>('pet', 1);
const petsOfMany = defineRecord<string>('pet-of', 1);

test('keys of two workspaces, two kinds or two owners never mix', async (t) => {
  const { store } = await temporaryStore(t);
  const kinds = [pets, petsOfMany];
  store.write((tx) => {
    for (const workspace of ['ws', 'ws_1', 'ws_10']) {
      for (const kind of kinds) {
        for (const owner of ['a', 'ab', 'a.b', 'b']) {
          for (const id of ['p1', 'p2'])
            tx.put(kind, `${workspace} ${kind.name} ${owner} ${id}`, workspace, owner, id);
        }
      }
    }
  });
  await store.durable();
  const found = [...store.list(petsOfMany, 'ws_1', ['a'], { limit: 100 })];
  assert.deepEqual(found, [
    { id: 'p1', value: 'ws_1 pet-of a p1' },
    { id: 'p2', value: 'ws_1 pet-of a p2' },
  ]);
  assert.equal([...store.list(pets, 'ws_1', [], { limit: 100 })].length, 8);
  assert.deepEqual([...store.list(pets, 'ws_', [], { limit: 100 })], []);
});

test('a page of a range begins after an id that need not exist, has no more records than requested, and may run backwards', async (t) => {
  const { store } = await temporaryStore(t);
  const ids = ['a', 'ab', 'b', 'c'];
  store.write((tx) => {
    tx.put(pets, 'the owner', 'ws_1');
    for (const id of ids) tx.put(pets, id, 'ws_1', id);
    for (const neighbour of ['pes', 'peu']) tx.put(defineRecord<string>(neighbour, 1), 'x', 'ws_1', 'z');
  });
  await store.durable();
  const pages: Record<string, [CommittedPage, string[]]> = {
    'all of it': [{ limit: 10 }, ['a', 'ab', 'b', 'c']],
    'the first two': [{ limit: 2 }, ['a', 'ab']],
    'none of it': [{ limit: 0 }, []],
    'behind one that exists': [{ after: 'a', limit: 2 }, ['ab', 'b']],
    'behind one that does not': [{ after: 'aa', limit: 10 }, ['ab', 'b', 'c']],
    'behind the last': [{ after: 'c', limit: 10 }, []],
    backwards: [{ limit: 10, reverse: true }, ['c', 'b', 'ab', 'a']],
    'the last one': [{ limit: 1, reverse: true }, ['c']],
    'backwards from one that exists': [{ after: 'b', limit: 10, reverse: true }, ['ab', 'a']],
    'backwards from one that does not': [{ after: 'bb', limit: 2, reverse: true }, ['b', 'ab']],
    'backwards from the first': [{ after: 'a', limit: 10, reverse: true }, []],
  };
  for (const [name, [page, expected]] of Object.entries(pages)) {
    assert.deepEqual(
      [...store.list(pets, 'ws_1', [], page)].map(({ id }) => id),
      expected,
      name,
    );
  }
});

test('ids in any writing system are listed in the order of their bytes', async (t) => {
  const { store } = await temporaryStore(t);
  const ids = ['\u00e9t\u00e9', '\ud83d\ude00', 'z', '\uffff', '\u6f22'];
  store.write((tx) => {
    for (const id of ids) tx.put(pets, id, 'ws_1', id);
  });
  await store.durable();
  const sorted = [...ids].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const forwards = [...store.list(pets, 'ws_1', [], { limit: 10 })].map(({ id }) => id);
  const backwards = [...store.list(pets, 'ws_1', [], { limit: 10, reverse: true })].map(({ id }) => id);
  assert.deepEqual([forwards, backwards], [sorted, [...sorted].reverse()]);
});

test('a list of records and a list of keys have the same end for all characters of ids', async (t) => {
  const { store } = await temporaryStore(t);
  const ids = ['a', '\uffff', '😀', '\u{10ffff}', '\u{10ffff}z'];
  store.write((tx) => {
    for (const id of ids) tx.put(petsOfMany, 'cat', 'ws_1', 'ann', id);
    tx.put(petsOfMany, 'cat', 'ws_1', 'ann😀', 'of another owner');
  });
  await store.durable();
  const listed = [...store.list(petsOfMany, 'ws_1', ['ann'], { limit: 10 })].map(({ id }) => id);
  const reversed = [...store.list(petsOfMany, 'ws_1', ['ann'], { limit: 10, reverse: true })];
  const keys = [...store.listKeys(petsOfMany, 'ws_1', ['ann'], 10)].map((key) => key.at(-1));
  assert.deepEqual([listed, reversed.map(({ id }) => id).reverse(), keys], [ids, ids, ids]);
});

test('two hundred ranges that are not read to the end leave no reader of LMDB open', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => {
    for (let i = 0; i < 100; i++) tx.put(pets, 'x', 'ws_1', `p${i}`);
  });
  await store.durable();
  for (let i = 0; i < 200; i++) {
    for (const { id } of store.list(pets, 'ws_1', [], { limit: 100 })) {
      assert.equal(id, 'p0');
      break;
    }
  }
});

test('the ids under a prefix include records that are not committed yet, and none of another prefix', async (t) => {
  const { store } = await temporaryStore(t);
  store.write((tx) => {
    for (const id of ['old', 'gone']) tx.put(petsOfMany, 'cat', 'ws_1', 'ann', id);
  });
  await store.durable();
  store.write((tx) => {
    tx.put(petsOfMany, 'cat', 'ws_1', 'ann', 'new');
    tx.put(petsOfMany, 'cat', 'ws_1', 'anna', 'of another owner');
    tx.put(petsOfMany, 'cat', 'ws_2', 'ann', 'elsewhere');
    tx.remove(petsOfMany, 'ws_1', 'ann', 'gone');
  });
  assert.deepEqual([...store.idsUnder(petsOfMany, 'ws_1', 'ann')], ['old', 'new']);
  const { uncommitted } = store.observe(() => store.idsUnder(petsOfMany, 'ws_1', 'ann'));
  await uncommitted;
  assert.deepEqual([...store.list(petsOfMany, 'ws_1', ['ann'], { limit: 9 })].length, 2);
});
