import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { KeyringError } from '#src/datasource/keys/keyring.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { putSealed, readSealed, removeSealed } from '#src/datasource/keys/sealed-connections.ts';
import { SYSTEM } from '#storage/keys.ts';
import { openStore } from '#storage/open-store.ts';
import { keyChecks, sealedConnections } from '#storage/records/datasources.ts';
import type { Store } from '#storage/store.ts';
import { damage } from '#test/support/store/damage.ts';

const connection = { kind: 'postgres', connection_string: 'postgres://h/d', schema: 'public' };
const place = (n: number) => ({ workspaceId: 'ws', slug: `s${n}`, revision: 1 });

async function open(t: TestContext): Promise<{ store: Store; path: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'troupe-keys-'));
  const store = await openStore(join(dir, 'store'), (error) => {
    throw error;
  });
  t.after(async () => {
    await store[Symbol.asyncDispose]();
    rmSync(dir, { recursive: true });
  });
  return { store, path: join(dir, 'keyring.json') };
}

test('the first start creates a keyring that only its owner can read', async (t) => {
  const { store, path } = await open(t);
  const holder = await KeyringStore.open(store, path);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(holder.states(), [{ id: holder.ring.active, active: true, sealed: 0 }]);
});

test('opening fails and writes nothing when the keyring that the store needs is missing', async (t) => {
  const { store, path } = await open(t);
  await KeyringStore.open(store, path);
  rmSync(path);
  await assert.rejects(KeyringStore.open(store, path), KeyringError);
  assert.throws(() => statSync(path), { code: 'ENOENT' });
});

test('the keyring of another server is rejected and stays unchanged', async (t) => {
  const [mine, other] = [await open(t), await open(t)];
  await KeyringStore.open(mine.store, mine.path);
  await KeyringStore.open(other.store, other.path);
  const foreign = readFileSync(other.path, 'utf8');
  writeFileSync(mine.path, foreign);
  await assert.rejects(KeyringStore.open(mine.store, mine.path), /does not fit this data directory/);
  assert.equal(readFileSync(mine.path, 'utf8'), foreign);
});

/** Gives the key another value under its id. Returns the content of the keyring. */
function changeKey(path: string, id: string) {
  const content = JSON.parse(readFileSync(path, 'utf8'));
  content.keys[id] = Buffer.alloc(32, 7).toString('base64');
  writeFileSync(path, JSON.stringify(content));
  return content;
}

/** A store with a sealed connection, and in which the check of the key that sealed it is damaged. */
async function openWithDamagedCheck(t: TestContext) {
  const { store, path } = await open(t);
  const { ring } = await KeyringStore.open(store, path);
  store.write((tx) => putSealed(tx, ring, place(1), connection));
  await store.durable();
  damage(join(dirname(path), 'store', 'data.mdb'), store.get(keyChecks, SYSTEM, ring.active)!.box);
  return { store, path, id: ring.active };
}

test('a key whose value was changed under the same id is rejected', async (t) => {
  const { store, path } = await open(t);
  const holder = await KeyringStore.open(store, path);
  changeKey(path, holder.ring.active);
  await assert.rejects(KeyringStore.open(store, path), KeyringError);
});

test('a keyring opens a store whose key check is damaged, and the check is written again', async (t) => {
  const { store, path, id } = await openWithDamagedCheck(t);
  store.refresh();
  assert.throws(() => store.get(keyChecks, SYSTEM, id), /is damaged/);
  const again = await KeyringStore.open(store, path);
  assert.deepEqual(readSealed(store, again, place(1)), connection);
  assert.ok(store.get(keyChecks, SYSTEM, id));
});

test('when the key check is damaged, a wrong key under the same id is rejected', async (t) => {
  const { store, path, id } = await openWithDamagedCheck(t);
  const content = changeKey(path, id);
  await assert.rejects(KeyringStore.open(store, path), /its key key_\w+ is another one/);
  content.keys = { key_other: content.keys[id] };
  content.active = 'key_other';
  writeFileSync(path, JSON.stringify(content));
  await assert.rejects(KeyringStore.open(store, path), /it lacks the key key_/);
});

for (const [what, text] of [
  ['invalid JSON', '{'],
  ['no keys', '{"active":"a","keys":{}}'],
  ['a short key', '{"active":"a","keys":{"a":"AAAA"}}'],
] as const) {
  test(`a keyring with ${what} is reported as damaged`, async (t) => {
    const { store, path } = await open(t);
    writeFileSync(path, text);
    await assert.rejects(KeyringStore.open(store, path), KeyringError);
  });
}

test('after a rotation the new key seals everything, and the old key stays for backups until its deletion', async (t) => {
  const { store, path } = await open(t);
  const holder = await KeyringStore.open(store, path);
  store.write((tx) => {
    for (let n = 0; n < 250; n++) putSealed(tx, holder.ring, place(n), connection);
  });
  await store.durable();
  const before = holder.ring.active;
  const after = await holder.add();
  assert.deepEqual(holder.states(), [
    { id: before, active: false, sealed: 250 },
    { id: after, active: true, sealed: 0 },
  ]);
  await holder.rotate();
  const rotated = [
    { id: before, active: false, sealed: 0 },
    { id: after, active: true, sealed: 250 },
  ];
  assert.deepEqual(holder.states(), rotated);
  const reopened = await KeyringStore.open(store, path);
  assert.deepEqual(reopened.states(), rotated);
  assert.deepEqual(
    [...store.list(keyChecks, SYSTEM, [], { limit: 9 })].map(({ id }) => id),
    [after],
    'the store, and a backup of it, needs the new key only',
  );
  for (let n = 0; n < 250; n++) assert.deepEqual(readSealed(store, reopened, place(n)), connection);
});

test('a key is deleted only when it seals no record, and afterwards the keyring still opens the store', async (t) => {
  const { store, path } = await open(t);
  const holder = await KeyringStore.open(store, path);
  const before = holder.ring.active;
  store.write((tx) => putSealed(tx, holder.ring, place(1), connection));
  await store.durable();
  const after = await holder.add();
  await assert.rejects(holder.delete(after), { code: 'key_in_use' });
  await assert.rejects(holder.delete(before), { code: 'key_in_use' });
  await assert.rejects(holder.delete('key_unknown'), { code: 'not_found' });
  await holder.rotate();
  await holder.delete(before);
  const reopened = await KeyringStore.open(store, path);
  assert.deepEqual(reopened.states(), [{ id: after, active: true, sealed: 1 }]);
  assert.deepEqual(readSealed(store, reopened, place(1)), connection);
});

test('the next rotation completes an interrupted rotation', async (t) => {
  const { store, path } = await open(t);
  const holder = await KeyringStore.open(store, path);
  store.write((tx) => {
    for (let n = 0; n < 5; n++) putSealed(tx, holder.ring, place(n), connection);
  });
  await store.durable();
  const after = await holder.add();
  const restarted = await KeyringStore.open(store, path);
  for (let n = 0; n < 5; n++) assert.deepEqual(readSealed(store, restarted, place(n)), connection);
  await restarted.rotate();
  assert.deepEqual(restarted.states().at(-1), { id: after, active: true, sealed: 5 });
});

test('a damaged connection does not stop a rotation, and its key is kept until the connection is removed', async (t) => {
  const { store, path } = await open(t);
  const first = await KeyringStore.open(store, path);
  store.write((tx) => {
    for (const n of [1, 2, 3]) putSealed(tx, first.ring, place(n), connection);
  });
  await store.durable();
  const { box } = store.get(sealedConnections, 'ws', 's2', '1')!;
  await store[Symbol.asyncDispose]();
  damage(join(dirname(path), 'store', 'data.mdb'), box);

  const again = await openStore(join(dirname(path), 'store'), assert.fail);
  t.after(() => again[Symbol.asyncDispose]());
  const holder = await KeyringStore.open(again, path);
  const old = holder.ring.active;
  await holder.add();
  await holder.rotate();
  const sealed = () => holder.states().map((key) => key.sealed);
  assert.deepEqual(sealed(), [1, 2]);
  await assert.rejects(holder.delete(old), { code: 'key_in_use' });
  again.write((tx) => removeSealed(tx, place(2)));
  await holder.rotate();
  assert.deepEqual(sealed(), [0, 2]);
  await holder.delete(old);
});
