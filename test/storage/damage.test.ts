import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { verify } from '#src/operate/maintenance/verify.ts';
import { DamagedRecord, defineRecord } from '#storage/codec.ts';
import { listingOf } from '#storage/lists/listing.ts';
import { openStore } from '#storage/open-store.ts';
import { damage } from '#test/support/store/damage.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';

const things = defineRecord<string>('thing', 1);
const names = defineRecord<null>('thing-name', 1);

test('one damaged record affects no other: lists omit it, its key is reported, and verify finds it', async (t) => {
  const root = temporaryDirectory(t);
  const path = join(root, 'store');
  const first = await openStore(path, assert.fail);
  first.write((tx) => {
    for (const id of ['a', 'b', 'c']) {
      tx.put(things, `the text of ${id}`, 'ws_1', id);
      tx.put(names, null, 'ws_1', id);
    }
  });
  await first[Symbol.asyncDispose]();
  assert.deepEqual((await verify(root)).damage, []);
  damage(join(path, 'data.mdb'), 'the text of b');

  const store = await openStore(path, assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const reported: string[] = [];
  store.onDamage((key, problem) => reported.push(`${key.join('/')}: ${problem}`));
  const page = store.list(things, 'ws_1', [], { limit: 2 });
  assert.deepEqual(
    [...page].map(({ id }) => id),
    ['a', 'c'],
  );
  const line = 'ws_1/thing/b: A stored thing is damaged: its checksum differs.';
  assert.deepEqual(reported, [line]);
  assert.throws(() => store.get(things, 'ws_1', 'b'), DamagedRecord);
  assert.equal(store.get(things, 'ws_1', 'a'), 'the text of a');

  const all = () => store.list(names, 'ws_1', [], { limit: 10 });
  const textOf = (_: null, id: string) => store.get(things, 'ws_1', id)!;
  assert.deepEqual(listingOf(all(), 10, textOf).items, ['the text of a', 'the text of c']);

  store.write((tx) => tx.put(things, 'new', 'ws_1', 'd')); // as by a server that runs during the check
  const found = await verify(root);
  assert.deepEqual(found.damage, ['record ws_1/thing/b: A stored record is damaged: its checksum differs.']);
});
