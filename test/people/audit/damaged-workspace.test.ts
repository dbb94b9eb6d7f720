import assert from 'node:assert/strict';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { type EndedQuery, QueryAudit } from '#src/people/audit/query-audit.ts';
import { auditedQueries } from '#storage/records/audit.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { damage } from '#test/support/store/damage.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const WRITE_MS = 1_000;
const QUERY: EndedQuery = {
  workspaceId: 'ws_1',
  userId: 'ada',
  slug: 'shop',
  origin: { by: 'notebook', sessionId: null, tokenId: null },
  outcome: 'done',
  rows: 1,
  durationMs: 1,
};

async function open(t: TestContext) {
  const { store, path } = await temporaryStore(t);
  const name = 'the name of the workspace';
  store.write((tx) => tx.put(workspaceRecords, { name, createdAt: '', owners: 1 }, 'ws_1'));
  await store.durable();
  const faults: unknown[] = [];
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const queries = new QueryAudit(new AuditTrail(store, (error) => faults.push(error)));
  t.after(() => queries[Symbol.dispose]());
  return { store, queries, faults, damageWorkspace: () => damage(join(path, 'data.mdb'), name) };
}

test('queries are noted in the audit of a workspace whose record is damaged', async (t) => {
  const { store, queries, faults, damageWorkspace } = await open(t);
  damageWorkspace();
  queries.note(QUERY);
  t.mock.timers.tick(WRITE_MS);
  await store.durable();
  assert.equal([...store.listKeys(auditedQueries, 'ws_1', [], 10)].length, 1);
  assert.deepEqual(faults, []);
});

test('a failure to note queries in the audit is reported, and later queries are noted', async (t) => {
  const { store, queries, faults } = await open(t);
  const unstorable = { toJSON: () => 'shop' }; // a function is in no record
  queries.note({ ...QUERY, slug: unstorable as unknown as string });
  t.mock.timers.tick(WRITE_MS);
  assert.equal(faults.length, 1);
  queries.note(QUERY);
  t.mock.timers.tick(WRITE_MS);
  await store.durable();
  assert.equal([...store.listKeys(auditedQueries, 'ws_1', [], 10)].length, 1);
});
