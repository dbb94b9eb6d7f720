import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { auditAtHome } from '#src/audit/audit-at-home.ts';
import { type AuditContext, AuditTrail } from '#src/audit/audit-trail.ts';
import type { TokenId, UserId, WorkspaceId } from '#src/core/ids.ts';
import { workspaceRecords } from '#storage/identity.ts';
import { temporaryStore } from '#test/support/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';

const HOME = 'ws_home' as WorkspaceId;
const CHANGE = { action: 'keyring.add', target: 'key_1', outcome: 'done' } as const;

const actorIn = (workspaceId: WorkspaceId): AuditContext => ({
  principal: { workspaceId, userId: 'ada' as UserId, tokenId: 'tok_1' as TokenId, role: 'owner', scopes: [] },
  address: '127.0.0.1',
  requestId: 'r',
});

/** Two workers, the second of which is the home of all workspaces. `writers` has the number of each that noted something. */
async function open(t: TestContext) {
  const { store } = await temporaryStore(t);
  store.write((tx) => tx.put(workspaceRecords, { name: 'Home', createdAt: '', owners: 1 }, HOME));
  await store.durable();
  const writers: number[] = [];
  const workers = testCluster(2, () => 1);
  const notes = workers.map((worker) => {
    const audit = new AuditTrail(store);
    const noteAll = audit.noteAll.bind(audit);
    audit.noteAll = (actor, changes) => {
      writers.push(worker.worker);
      noteAll(actor, changes);
    };
    return auditAtHome(audit, store, worker);
  });
  const entries = async (workspaceId: WorkspaceId) => {
    const { items } = await new AuditTrail(store).list(workspaceId, { limit: 10 });
    return items.map(({ target }) => target);
  };
  return { store, workers, writers, note: notes[0]!, noteAtHome: notes[1]!, entries };
}

test('a change that one worker decides is noted by the worker in which the workspace of the caller is at home', async (t) => {
  const { store, writers, note, noteAtHome, entries } = await open(t);
  await note(actorIn(HOME), [CHANGE]);
  assert.deepEqual([writers, await entries(HOME)], [[1], ['key_1']], 'it is on disk before the answer');
  assert.equal(noteAtHome(actorIn(HOME), [CHANGE]), undefined, 'at home it is in the commit of the change');
  await store.durable();
  assert.deepEqual([writers, (await entries(HOME)).length], [[1, 1], 2]);
});

test('a change is noted although the home of the workspace ends at this moment', async (t) => {
  const { store, workers, writers, note, entries } = await open(t);
  workers[1]!.onAsked('audit', () => undefined);
  await note(actorIn(HOME), [CHANGE]);
  await store.durable();
  assert.deepEqual([writers, await entries(HOME)], [[0], ['key_1']]);
});

test('nothing is noted in a workspace that was deleted', async (t) => {
  const { store, note, entries } = await open(t);
  const gone = 'ws_gone' as WorkspaceId;
  await note(actorIn(gone), [CHANGE]);
  await store.durable();
  assert.deepEqual(await entries(gone), []);
});
