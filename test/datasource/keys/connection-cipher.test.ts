import assert from 'node:assert/strict';
import test from 'node:test';
import {
  openConnection,
  resealConnection,
  sealConnection,
  UnsealError,
} from '#src/datasource/keys/connection-cipher.ts';
import { withNewKey } from '#src/datasource/keys/keyring.ts';

const place = { workspaceId: 'ws1', slug: 'sales', revision: 3 };
const connection = { kind: 'postgres', connection_string: 'postgres://u:canary@h/d', schema: 'public' };

test('unsealing returns the connection, and the sealed form reveals nothing of the connection', () => {
  const ring = withNewKey(undefined);
  const sealed = sealConnection(ring, place, connection);
  assert.deepEqual(openConnection(ring, place, sealed), connection);
  for (const bytes of [sealed.box, sealed.keyBox]) {
    assert.equal(Buffer.from(bytes).toString('latin1').includes('canary'), false);
  }
});

test('two sealed forms of one connection have nothing in common', () => {
  const ring = withNewKey(undefined);
  const [a, b] = [sealConnection(ring, place, connection), sealConnection(ring, place, connection)];
  assert.notDeepEqual(a.box, b.box);
  assert.notDeepEqual(a.keyBox, b.keyBox);
});

for (const [what, moved] of [
  ['another workspace', { ...place, workspaceId: 'ws2' }],
  ['another slug', { ...place, slug: 'sales2' }],
  ['another revision', { ...place, revision: 4 }],
] as const) {
  test(`a sealed connection cannot be unsealed in the place of ${what}`, () => {
    const ring = withNewKey(undefined);
    const sealed = sealConnection(ring, place, connection);
    assert.throws(() => openConnection(ring, moved, sealed), UnsealError);
  });
}

for (const member of ['box', 'keyBox', 'nonce', 'keyNonce'] as const) {
  test(`a sealed connection with one bit of ${member} changed cannot be unsealed`, () => {
    const ring = withNewKey(undefined);
    const sealed = sealConnection(ring, place, connection);
    const bytes = Uint8Array.from(sealed[member]);
    bytes[0]! ^= 1;
    assert.throws(() => openConnection(ring, place, { ...sealed, [member]: bytes }), UnsealError);
  });
}

test('a sealed connection cannot be unsealed with another keyring, nor with a keyring that lacks its key', () => {
  const ring = withNewKey(undefined);
  const sealed = sealConnection(ring, place, connection);
  const other = withNewKey(undefined);
  assert.throws(() => openConnection(other, place, sealed), UnsealError);
  const disguised = { active: ring.active, keys: new Map([[ring.active, other.keys.get(other.active)!]]) };
  assert.throws(() => openConnection(disguised, place, sealed), UnsealError);
});

test('resealing with another key keeps the connection', () => {
  const before = withNewKey(undefined);
  const sealed = sealConnection(before, place, connection);
  const after = withNewKey(before);
  const resealed = resealConnection(after, place, sealed);
  assert.equal(resealed.keyId, after.active);
  assert.deepEqual(resealed.box, sealed.box);
  const onlyNew = { active: after.active, keys: new Map([[after.active, after.keys.get(after.active)!]]) };
  assert.deepEqual(openConnection(onlyNew, place, resealed), connection);
});

test('the error of a failed unsealing contains nothing of the connection', () => {
  const ring = withNewKey(undefined);
  const sealed = sealConnection(ring, place, connection);
  assert.throws(
    () => openConnection(ring, { ...place, revision: 9 }, sealed),
    (error: Error) => !`${error.message}${error.stack}${JSON.stringify(error)}`.includes('canary'),
  );
});
