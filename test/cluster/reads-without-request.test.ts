/** Reads of kernels and agents that no request causes see the latest commits of other workers. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ModelKeys } from '#src/agent/models/model-keys.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { LinkPool } from '#src/datasource/query/link-pool.ts';
import { Queries, type Reader } from '#src/datasource/query/queries.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { QueryAudit } from '#src/people/audit/query-audit.ts';
import { WorkspacePackages } from '#src/workspace/packages/workspace-packages.ts';
import { modelKeyRecords } from '#storage/records/conversations.ts';
import { type DatasourceRecord, datasourceGrants, datasourceRecords } from '#storage/records/datasources.ts';
import { workspacePackageRecords } from '#storage/records/packages.ts';
import { commitElsewhere } from '#test/support/store/commit-elsewhere.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
const TIMES = { createdAt: '', updatedAt: '' };

async function shared(t: TestContext) {
  const { path } = await temporaryStore(t);
  const store = await sharedStore(t, path);
  return { store, path };
}

test('a statement is refused at once when another worker has revoked the grant or deleted the datasource', async (t) => {
  const { store, path } = await shared(t);
  const record: DatasourceRecord = {
    id: 'ds_1',
    slug: 'sales',
    kind: 'sqlite',
    name: null,
    revision: 1,
    embedded: true,
    createdBy: 'ann',
    ...TIMES,
  };
  const grant = { grantedBy: 'ann', createdAt: '' };
  const share = () =>
    store.write((tx) => {
      tx.put(datasourceRecords, record, WORKSPACE, 'sales');
      tx.put(datasourceGrants, grant, WORKSPACE, 'sales', 'role:viewer');
    });
  const opened: number[] = [];
  const pool = new LinkPool(async (_, { revision }) => {
    opened.push(revision);
    return { probe: async () => {}, query: async function* () {}, close: async () => {} };
  });
  t.after(() => pool[Symbol.asyncDispose]());
  using audit = new QueryAudit(new AuditTrail(store));
  const queries = new Queries(store, pool, audit, new ServerMetrics());
  const origin = { by: 'notebook', sessionId: null, tokenId: null } as const;
  const reader = { workspaceId: WORKSPACE, userId: 'bob', role: 'viewer', origin } as Reader;
  /** Reads in the same turn in which another worker commits `change`. */
  const run = (change: () => void) => {
    store.get(datasourceRecords, WORKSPACE, 'sales');
    change();
    const options = { signal: new AbortController().signal, readOnly: true };
    return queries.run(reader, 'sales', 'SELECT 1', [], options).next();
  };
  share();
  await store.durable();
  await run(() => commitElsewhere(path, [datasourceRecords, { ...record, revision: 2 }, WORKSPACE, 'sales']));
  assert.deepEqual(opened, [2]);
  const revoked = () => commitElsewhere(path, [datasourceGrants, null, WORKSPACE, 'sales', 'role:viewer']);
  await assert.rejects(run(revoked), { code: 'not_found' });
  share();
  await store.durable();
  const deleted = () => commitElsewhere(path, [datasourceRecords, null, WORKSPACE, 'sales']);
  await assert.rejects(run(deleted), { code: 'not_found' });
});

test('an agent does not use a model key that another worker has removed', async (t) => {
  const { store, path } = await shared(t);
  const keys = new ModelKeys(store, { seal: () => {}, remove: () => {}, open: () => 'key' });
  const record = { updatedBy: 'ann', updatedAt: '' };
  store.write((tx) => tx.put(modelKeyRecords, record, WORKSPACE, 'openai'));
  await store.durable();
  assert.equal(keys.open(WORKSPACE, 'openai'), 'key');
  commitElsewhere(path, [modelKeyRecords, null, WORKSPACE, 'openai']);
  assert.equal(keys.open(WORKSPACE, 'openai'), undefined);
});

test('a kernel is started with the packages that another worker has noted', async (t) => {
  const { store, path } = await shared(t);
  const packages = new WorkspacePackages(store, undefined, async () => []);
  assert.deepEqual(packages.requirementsOf(WORKSPACE), []);
  const byName = { six: { requirement: 'six==1', addedBy: 'ann', addedAt: '' } };
  commitElsewhere(path, [workspacePackageRecords, { byName }, WORKSPACE]);
  assert.deepEqual(packages.requirementsOf(WORKSPACE), ['six==1']);
});
