import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import type { Principal } from '#src/base/caller/principal.ts';
import { Datasources } from '#src/datasource/datasources.ts';
import { DatasourceGrants } from '#src/datasource/grants.ts';
import { KeyringStore } from '#src/datasource/keys/keyring-store.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { addWorkspaces, temporaryDirectory, temporaryStore } from '#test/support/store/temporary-store.ts';

test('a grant that is made in the turn that deletes its datasource does not apply to the next datasource of the same name', async (t) => {
  const { store } = await temporaryStore(t);
  addWorkspaces(store, 'ws_home');
  const audit = new AuditTrail(store);
  const datasources = new Datasources({
    store,
    keys: await KeyringStore.open(store, join(temporaryDirectory(t), 'keyring.json')),
    audit,
    connections: {
      parse: () => ({ kind: 'postgres' }),
      isEmbedded: () => false,
      untestedWarnings: () => [],
      probe: () => assert.fail(),
    },
    onGone: () => undefined,
  });
  const grants = new DatasourceGrants(store, datasources, audit);
  const principal = { workspaceId: 'ws_home', userId: 'ada', role: 'owner' } as Principal;
  const actor = { principal, address: '', requestId: '' };
  const create = () => datasources.create(actor, { slug: 'sales', connection: {}, testConnection: false });
  await create();
  grants.add(actor, 'sales', 'role:viewer');
  datasources.delete(actor, 'sales');
  await create();
  await store.durable();
  assert.deepEqual(grants.list(actor, 'sales'), []);
});
