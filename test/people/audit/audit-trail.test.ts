import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import {
  type AuditContext,
  type AuditQuery,
  AuditTrail,
  MAX_CHANGES,
  MAX_QUERIES,
} from '#src/people/audit/audit-trail.ts';
import { type EndedQuery, QueryAudit } from '#src/people/audit/query-audit.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;
const actor: AuditContext = {
  principal: {
    workspaceId: HOME,
    userId: 'ada' as UserId,
    tokenId: 'tok_1' as TokenId,
    role: 'owner',
    scopes: [],
  },
  address: '127.0.0.1',
  requestId: 'r',
};
const query: EndedQuery = {
  workspaceId: HOME,
  userId: 'ada',
  slug: 'sales',
  origin: { by: 'notebook', sessionId: 'nb_1', tokenId: null },
  outcome: 'done',
  rows: 3,
  durationMs: 1.5,
};

/** Queries are stored only for a workspace that exists. */
async function storeWithHome(t: TestContext) {
  const temporary = await temporaryStore(t);
  temporary.store.write((tx) =>
    tx.put(workspaceRecords, { name: 'Home', createdAt: '2031-01-01T00:00:00.000Z', owners: 1 }, HOME),
  );
  return temporary;
}

async function everything(audit: AuditTrail) {
  const items = [];
  for (let after: string | undefined; ; ) {
    const page = await audit.list(HOME, { after, limit: 7 });
    items.push(...page.items);
    if (page.nextCursor === null) return items;
    after = page.nextCursor;
  }
}

test('changes and queries are one list in the order of time, page by page', async (t) => {
  const { store } = await storeWithHome(t);
  const audit = new AuditTrail(store);
  for (let n = 0; n < 20; n++) {
    audit.note(actor, { action: 'member.add', target: `${2 * n}`, outcome: 'done' });
    const queries = new QueryAudit(audit);
    queries.note({ ...query, slug: `${2 * n + 1}` });
    queries[Symbol.dispose]();
  }
  await store.durable();
  assert.deepEqual(
    (await everything(audit)).map(({ target }) => Number(target)),
    Array.from({ length: 40 }, (_, n) => n),
  );
  await assert.rejects(audit.list(HOME, { after: 'aud_none', limit: 1 }), { code: 'invalid_cursor' });
  assert.deepEqual((await audit.list('ws_other' as WorkspaceId, { limit: 5 })).items, []);
});

test('the audit is filtered by user, by a prefix of the action, by target and by time, in either order', async (t) => {
  const { store } = await storeWithHome(t);
  const audit = new AuditTrail(store);
  const bob = { ...actor, principal: { ...actor.principal, userId: 'bob' as UserId } };
  audit.note(actor, { action: 'member.add', target: 'bob', outcome: 'done' });
  audit.note(bob, { action: 'token.create', target: 'tok_2', outcome: 'done' });
  audit.note(bob, { action: 'token.revoke', target: 'tok_2', outcome: 'done' });
  const queries = new QueryAudit(audit);
  queries.note(query);
  queries[Symbol.dispose]();
  await store.durable();
  const actions = async (filters: Partial<AuditQuery>) =>
    (await audit.list(HOME, { limit: 10, ...filters })).items.map(({ action }) => action);
  assert.deepEqual(await actions({ userId: 'bob' }), ['token.create', 'token.revoke']);
  assert.deepEqual(await actions({ action: 'token.r' }), ['token.revoke']);
  assert.deepEqual(await actions({ target: 'bob' }), ['member.add']);
  assert.deepEqual(await actions({ userId: 'bob', order: 'desc' }), ['token.revoke', 'token.create']);
  assert.deepEqual((await actions({ order: 'desc' }))[0], 'datasource.query');
  assert.deepEqual(await actions({ createdAfter: '2999-01-01T00:00:00Z' }), []);
  assert.equal((await actions({ createdAfter: '2000-01-01T00:00:00Z' })).length, 4);
});

test('similar queries are one entry, and different queries are several entries', async (t) => {
  const { store } = await storeWithHome(t);
  const audit = new AuditTrail(store);
  const queries = new QueryAudit(audit);
  for (let n = 0; n < 1_000; n++) queries.note(query);
  queries.note({ ...query, outcome: 'failed' });
  queries.note({ ...query, origin: { by: 'agent', sessionId: null, tokenId: 'tok_2' } });
  queries.note({ ...query, userId: 'grace' });
  queries[Symbol.dispose]();
  await store.durable();
  const entries = await everything(audit);
  assert.deepEqual(
    entries.map(({ userId, tokenId, outcome, query: counted }) => [
      userId,
      tokenId,
      outcome,
      counted?.statements,
    ]),
    [
      ['ada', '', 'done', 1_000],
      ['ada', '', 'failed', 1],
      ['ada', 'tok_2', 'done', 1],
      ['grace', '', 'done', 1],
    ],
  );
  assert.deepEqual(entries[0]?.query, {
    by: 'notebook',
    sessionId: 'nb_1',
    statements: 1_000,
    rows: 3_000,
    durationMs: 1_500,
  });
});

test('queries take a bounded part of the store, however many there are, and displace no change', async (t) => {
  const { store, reopen } = await storeWithHome(t);
  const first = new AuditTrail(store);
  first.note(actor, { action: 'member.add', target: 'kept', outcome: 'done' });
  const note = async (audit: AuditTrail, count: number, from: number) => {
    const queries = new QueryAudit(audit);
    for (let n = from; n < from + count; n++) {
      queries.note({ ...query, slug: `${n}` });
      if (n % 1_000 === 0) await store.durable();
    }
    queries[Symbol.dispose]();
  };
  await note(first, MAX_QUERIES + 3_000, 0);
  await store.durable();
  const kept = (await first.list(HOME, { limit: 100_000 })).items.length;
  assert.ok(kept <= MAX_QUERIES + 501, `${kept}`);
  const again = new AuditTrail(await reopen());
  const queries = new QueryAudit(again);
  for (let n = 0; n < 600; n++) queries.note({ ...query, slug: `again-${n}` });
  queries[Symbol.dispose]();
  await again.list(HOME, { limit: 1 });
  const { items } = await again.list(HOME, { limit: 100_000 });
  assert.ok(items.length <= MAX_QUERIES + 1_101);
  assert.equal(items[0]?.target, 'kept');
  assert.ok(Number(items[1]?.target) > 1_000, 'the oldest queries have gone');
});

test('a workspace has a bounded number of changes: the oldest are removed', async (t) => {
  const { store } = await storeWithHome(t);
  const audit = new AuditTrail(store);
  for (let n = 0; n < MAX_CHANGES + 2_000; n++) {
    audit.note(actor, { action: 'token.create', target: `${n}`, outcome: 'done' });
    if (n % 1_000 === 0) await store.durable();
  }
  await store.durable();
  const { items } = await audit.list(HOME, { limit: 100_000 });
  assert.ok(items.length <= MAX_CHANGES + 501 && items.length >= MAX_CHANGES);
  assert.equal(items.at(-1)?.target, `${MAX_CHANGES + 1_999}`);
});
