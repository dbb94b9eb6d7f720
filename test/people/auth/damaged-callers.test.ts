/** Callers whose stored record is damaged. */
import assert from 'node:assert/strict';
import { join as joinPath } from 'node:path';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { Identity } from '#src/people/auth/identity.ts';
import { SYSTEM } from '#storage/keys.ts';
import { accessTokenRecords, workspaceRecords, workspaceTokens } from '#storage/records/identity.ts';
import { damage } from '#test/support/store/damage.ts';
import { temporaryStore } from '#test/support/store/temporary-store.ts';
import { testCluster } from '#test/support/test-cluster.ts';
import { openIdentity, refusalOf } from './identity-fixture.ts';

/** Two editors; `damageText` damages the records that have this text. */
async function openTwo(t: TestContext) {
  const fixture = await openIdentity(t);
  const bob = fixture.join('bob', 'editor');
  const eve = fixture.join('eve', 'editor');
  fixture.members.change(fixture.owner.workspaceId, 'bob', { name: 'the name of bob' });
  fixture.store.write((tx) => {
    const workspace = tx.get(workspaceRecords, 'home')!;
    tx.put(workspaceRecords, { ...workspace, name: 'the name of the workspace' }, 'home');
  });
  await fixture.store.durable();
  const damageText = (text: string) => damage(joinPath(fixture.dataDir, 'store', 'data.mdb'), text);
  return { ...fixture, bob, eve, damageText };
}

for (const { what, text, refusal } of [
  { what: 'token', text: 'of bob', refusal: 'unauthenticated' },
  { what: 'membership', text: 'the name of bob', refusal: 'not_found' },
])
  test(`a caller whose ${what} is damaged is no longer valid, and other callers can be checked in the same pass`, async (t) => {
    const { authenticator, bob, eve, damageText } = await openTwo(t);
    damageText(text);
    const isValid = authenticator.createRevalidator();
    assert.deepEqual([isValid(bob.principal), isValid(eve.principal)], [false, true]);
    assert.equal(
      refusalOf(() => authenticator.renew(bob.principal, 'notebook.read')),
      refusal,
    );
    assert.equal(authenticator.renew(eve.principal, 'notebook.read'), eve.principal);
  });

test('the members of a workspace whose record is damaged stay valid', async (t) => {
  const { store, authenticator, eve, damageText } = await openTwo(t);
  damageText('the name of the workspace');
  assert.throws(() => store.get(workspaceRecords, 'home'));
  assert.equal(authenticator.createRevalidator()(eve.principal), true);
});

test('a member can be removed while the token of another member is damaged, which is removed as well', async (t) => {
  const { store, members, owner, bob, eve, enter, damageText } = await openTwo(t);
  damageText('of bob');
  members.remove(owner.workspaceId, 'eve');
  await store.durable();
  assert.equal(
    refusalOf(() => enter(eve.secret)),
    'unauthenticated',
  );
  assert.equal(store.has(accessTokenRecords, SYSTEM, bob.token.id), false);
  assert.deepEqual([...store.listKeys(workspaceTokens, 'home', [], 10)], []);
});

test('a listener that throws does not prevent the others from being called; the change is announced but not acknowledged', async (t) => {
  const { store } = await temporaryStore(t);
  const [worker, other] = testCluster(2, () => 0);
  other!.onAsked('identity-changed', () => true);
  const faults: unknown[] = [];
  const identity = new Identity(store, Date.now, worker, (error) => faults.push(error));
  const fault = new Error('a listener failed');
  let isBroken = true;
  let calls = 0;
  identity.onChange(() => {
    if (isBroken) throw fault;
  });
  identity.onChange(() => calls++);
  const put = () =>
    identity.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, 'ws_1'));
  put();
  assert.deepEqual([calls, faults], [1, [fault]]);
  await assert.rejects(
    identity.durable()!,
    (error) => error instanceof AppError && error.code === 'unavailable',
  );
  assert.deepEqual(other!.asked, ['identity-changed']);
  isBroken = false;
  put();
  await identity.durable();
  assert.deepEqual([calls, other!.asked.length], [2, 2]);
});

test('a change is not acknowledged if a worker cannot act on it, and the next change is acknowledged', async (t) => {
  const { store } = await temporaryStore(t);
  const [worker, other] = testCluster(2, () => 0);
  const identity = new Identity(store, Date.now, worker);
  let isBroken = true;
  other!.onAsked('identity-changed', () => {
    if (isBroken) throw new Error('the streams of a caller could not be ended');
    return true;
  });
  const put = () =>
    identity.write((tx) => tx.put(workspaceRecords, { name: '', createdAt: '', owners: 1 }, 'ws_1'));
  put();
  await assert.rejects(
    identity.durable()!,
    (error) => error instanceof AppError && error.code === 'unavailable',
  );
  put();
  const failing = identity.durable()!;
  put();
  const both = identity.durable()!;
  await assert.rejects(failing);
  await assert.rejects(both, 'a request that waits for the latest change waits for those before it');
  isBroken = false;
  put();
  await identity.durable();
});
