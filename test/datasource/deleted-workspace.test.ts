/** Secrets that a request would seal in a workspace that was deleted after the request's admission. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { ModelKeys } from '#src/agent/models/model-keys.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { Datasources } from '#src/datasource/datasources.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { SecretStore } from '#src/datasource/keys/secret-store.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { SYSTEM } from '#storage/keys.ts';
import { sealedBy } from '#storage/records/datasources.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { addWorkspaces, temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';

test('no connection and no key is sealed in a workspace that was deleted during the test of the connection', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, 'ws_home');
  const keys = await KeyringStore.open(store, join(temporaryDirectory(t), 'keyring.json'));
  const principal = { workspaceId: 'ws_home', userId: 'ada', role: 'owner' } as Principal;
  const datasources = new Datasources({
    store,
    keys,
    audit: new AuditTrail(store),
    connections: {
      parse: () => ({ kind: 'postgres' }),
      isEmbedded: () => false,
      untestedWarnings: () => [],
      async probe() {
        store.write((tx) => tx.remove(workspaceRecords, 'ws_home'));
        return { ok: true, message: '', elapsedMs: 1 };
      },
    },
    onGone: assert.fail,
  });
  const create = (testConnection: boolean) =>
    datasources.create(
      { principal, address: '', requestId: '' },
      { slug: `s-${testConnection}`, connection: {}, testConnection },
    );
  const sealed = async () => {
    await store.durable();
    return [...store.listKeys(sealedBy, SYSTEM, [], 10)].length;
  };
  assert.equal((await create(false)).saved, true);
  await assert.rejects(create(true), { code: 'not_found' });
  assert.throws(() => new ModelKeys(store, new SecretStore(store, keys)).set(principal, 'openai', 'x'), {
    code: 'not_found',
  });
  assert.equal(await sealed(), 1);
});
