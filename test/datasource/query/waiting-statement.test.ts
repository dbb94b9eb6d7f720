/** Statements that wait for a connection, which can take half a minute, while the rights to the datasource change. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { LinkPool } from '#src/datasource/query/link-pool.ts';
import { Queries, type Reader } from '#src/datasource/query/queries.ts';
import { AuditTrail } from '#src/people/audit/audit-trail.ts';
import { QueryAudit } from '#src/people/audit/query-audit.ts';
import { datasourceGrants, datasourceRecords } from '#storage/records/datasources.ts';
import type { Store } from '#storage/store.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { RECORD } from '../datasource-record.ts';

const WORKSPACE = 'ws_1' as WorkspaceId;
/** Runs a statement of a member to whom the datasource is granted, and makes a change while its connection is being opened. */
async function changedMeanwhile(t: TestContext, change: (store: Store) => void) {
  const { store } = await temporaryStore(t);
  store.write((tx) => {
    tx.put(datasourceRecords, RECORD, WORKSPACE, 'sales');
    tx.put(datasourceGrants, { grantedBy: 'ann', createdAt: '' }, WORKSPACE, 'sales', 'user:bob');
  });
  let statements = 0;
  const pool = new LinkPool(async () => {
    change(store);
    return {
      probe: async () => {},
      query: async function* () {
        statements++;
        yield* [];
      },
      close: async () => {},
    };
  });
  t.after(() => pool[Symbol.asyncDispose]());
  const audit = new QueryAudit(new AuditTrail(store));
  t.after(() => audit[Symbol.dispose]());
  const queries = new Queries(store, pool, audit, new ServerMetrics());
  const origin = { by: 'notebook', sessionId: null, tokenId: null } as const;
  const reader = { workspaceId: WORKSPACE, userId: 'bob', role: 'viewer', origin } as Reader;
  const options = { signal: new AbortController().signal, readOnly: false };
  const ended = queries.run(reader, 'sales', 'DELETE FROM sales', [], options).next();
  return { ended, statements: () => statements };
}

test('a waiting statement is not sent if its member loses the grant meanwhile', async (t) => {
  const { ended, statements } = await changedMeanwhile(t, (store) =>
    store.write((tx) => tx.remove(datasourceGrants, WORKSPACE, 'sales', 'user:bob')),
  );
  await assert.rejects(ended, { code: 'not_found' });
  assert.equal(statements(), 0);
});

test('a waiting statement is not sent if its connection is replaced meanwhile', async (t) => {
  const { ended, statements } = await changedMeanwhile(t, (store) =>
    store.write((tx) => tx.put(datasourceRecords, { ...RECORD, revision: 2 }, WORKSPACE, 'sales')),
  );
  await assert.rejects(ended, { category: 'query', detail: /was changed.*Run it again/ });
  assert.equal(statements(), 0);
});

test('a waiting statement is sent if nothing changes meanwhile', async (t) => {
  const { ended, statements } = await changedMeanwhile(t, () => {});
  await ended;
  assert.equal(statements(), 1);
});
