import assert from 'node:assert/strict';
import { join as joinPath } from 'node:path';
import test from 'node:test';
import { withNewKey } from '#src/datasource/keys/keyring.ts';
import { listSealedBy, putSealed, reseal, unlinkSealed } from '#src/datasource/keys/sealed-connections.ts';
import { WorkspaceDeletion } from '#src/people/auth/workspace-deletion.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import { defineRecord } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { accessTokenRecords } from '#storage/records/identity.ts';
import { Removals, removalOf } from '#storage/removals.ts';
import { eventually } from '#test/support/processes.ts';
import { damage } from '#test/support/store/damage.ts';
import { openIdentity } from './identity-fixture.ts';

test('nothing is left of a deleted workspace, even if one of its tokens and connections is damaged', async (t) => {
  const { store, workspaces, tokens, members, owner, enter, dataDir } = await openIdentity(t);
  const { id } = workspaces.create(owner, 'another one');
  const principal = enter('bootstrap-token-of-the-tests', id);
  members.add(principal.workspaceId, 'bob', { role: 'editor' });
  const scopes = ['workspaceRuntime:connect'] as const;
  const { token } = tokens.create(principal, { name: 'the token to damage', scopes, userId: 'bob' });
  const ring = withNewKey(undefined);
  const place = { workspaceId: id, slug: 'shop', revision: 1 };
  store.write((tx) => putSealed(tx, ring, place, { kind: 'sqlite', path: 'shop.db' } as never));
  const sealed = defineRecord<string>('sealed-connection', 1);
  store.write((tx) => tx.put(sealed, 'the connection to damage', id, place.slug, '1'));
  await store.durable();
  const file = joinPath(dataDir, 'store', 'data.mdb');
  damage(file, 'the token to damage');
  damage(file, 'the connection to damage');

  const removals = new Removals(store, (error) => assert.ifError(error));
  const deletion = new WorkspaceDeletion(
    workspaces,
    { cluster: ALONE, removals },
    { mayBeInUse: async () => false, isActive: () => false, forget() {}, deleted() {}, unlink: unlinkSealed },
  );
  deletion.delete(owner, id);
  await eventually('nothing is left of it', () => !removals.isPending(removalOf(id)));
  removals[Symbol.dispose]();
  await store.durable();
  assert.deepEqual([...store.listPartition(id, 10)], []);
  assert.equal(store.has(accessTokenRecords, SYSTEM, token.id), false);

  assert.deepEqual(listSealedBy(store, ring.active, 10), [place]);
  store.write((tx) => reseal(tx, withNewKey(ring), ring.active, place));
  await store.durable();
  assert.deepEqual(listSealedBy(store, ring.active, 10), [], 'the next rotation forgets the connection');
});
