/** The audit of a workspace in which several workers note their changes. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { TokenId, UserId, WorkspaceId } from '#src/base/ids.ts';
import { type AuditContext, AuditTrail, MAX_CHANGES } from '#src/people/audit/audit-trail.ts';
import { auditRecords } from '#storage/records/audit.ts';
import { workspaceRecords } from '#storage/records/identity.ts';
import { sharedStore, temporaryStore } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;

const actorIn = (workspaceId: WorkspaceId): AuditContext => ({
  principal: { workspaceId, userId: 'ada' as UserId, tokenId: 'tok_1' as TokenId, role: 'owner', scopes: [] },
  address: '127.0.0.1',
  requestId: 'r',
});

const change = (target: string) => ({ action: 'keyring.add', target, outcome: 'done' }) as const;

async function twoWorkers(t: TestContext) {
  const { store, path } = await temporaryStore(t);
  store.write((tx) => tx.put(workspaceRecords, { name: 'Home', createdAt: '', owners: 1 }, HOME));
  await store.durable();
  const open = async () => {
    const own = await sharedStore(t, path);
    return { store: own, audit: new AuditTrail(own) };
  };
  const [first, second] = [await open(), await open()];
  const count = () => {
    first.store.refresh();
    return [...first.store.listKeys(auditRecords, HOME, [], 2 * MAX_CHANGES)].length;
  };
  return { first, second, count };
}

test('the audit entry of a change is in the commit of the change, in every worker', async (t) => {
  const { first, second } = await twoWorkers(t);
  second.store.write((tx) => tx.put(workspaceRecords, { name: 'Changed', createdAt: '', owners: 1 }, HOME));
  second.audit.note(actorIn(HOME), change('a'));
  await second.store.durable();
  assert.equal(second.store.durable(), undefined, 'there is no other commit');
  first.store.refresh();
  assert.equal(first.store.get(workspaceRecords, HOME)?.name, 'Changed');
  const { items } = await first.audit.list(HOME, { limit: 10 });
  assert.deepEqual(
    items.map(({ target }) => target),
    ['a'],
  );
});

test('no audit entry is written into a workspace that another worker has deleted meanwhile', async (t) => {
  const { first, second, count } = await twoWorkers(t);
  second.store.write((tx) => tx.remove(workspaceRecords, HOME));
  await second.store.durable();
  first.audit.note(actorIn(HOME), change('a'));
  await first.store.durable();
  assert.equal(count(), 0);
});

test('the audit stays bounded although no worker knows the entries that other workers add', async (t) => {
  const { first, second, count } = await twoWorkers(t);
  const note = async ({ store, audit }: typeof first, entries: number) => {
    audit.note(actorIn(HOME), ...Array.from({ length: entries }, (_, n) => change(`${n}`)));
    await store.durable();
  };
  await note(first, 400); // the first worker knows only these 400 entries of its own
  for (let n = 0; n < MAX_CHANGES; n += 5_000) await note(second, 5_000);
  for (let n = 0; n < 4; n++) {
    await note(first, 300);
    assert.ok(count() <= MAX_CHANGES + 1_000, `${count()}`);
  }
});
