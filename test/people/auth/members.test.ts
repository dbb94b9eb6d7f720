import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openIdentity, refusalOf, START } from './identity-fixture.ts';

test('adding a member creates the user', async (t) => {
  const { members, owner } = await openIdentity(t);
  const ada = {
    userId: 'ada@example.org',
    role: 'editor',
    name: 'Ada',
    createdAt: START,
    updatedAt: START,
  } as const;
  assert.deepEqual(members.add(owner.workspaceId, ada.userId, { role: 'editor', name: 'Ada' }), ada);
  assert.deepEqual(members.read(owner.workspaceId, ada.userId), ada);
  assert.equal(
    refusalOf(() => members.add(owner.workspaceId, ada.userId, { role: 'viewer' })),
    'already_exists',
  );
  assert.deepEqual(members.read(owner.workspaceId, ada.userId), ada);
});

test('a role and a name are changed independently', async (t) => {
  const { members, owner, clock } = await openIdentity(t);
  members.add(owner.workspaceId, 'ada', { role: 'editor', name: 'Ada' });
  clock.ms += 5;
  const changed = members.change(owner.workspaceId, 'ada', { role: 'viewer' });
  const updatedAt = '2030-01-01T00:00:00.005Z';
  assert.deepEqual(changed, { userId: 'ada', role: 'viewer', name: 'Ada', createdAt: START, updatedAt });
  const cleared = members.change(owner.workspaceId, 'ada', { name: null });
  assert.deepEqual(cleared, { ...changed, name: null, updatedAt: '2030-01-01T00:00:00.006Z' });
  assert.deepEqual(members.read(owner.workspaceId, 'ada'), cleared);
});

test('the last owner can be neither removed nor given a lower role', async (t) => {
  const { members, owner } = await openIdentity(t);
  const { workspaceId } = owner;
  assert.equal(
    refusalOf(() => members.remove(workspaceId, 'owner')),
    'last_owner',
  );
  assert.equal(
    refusalOf(() => members.change(workspaceId, 'owner', { role: 'editor' })),
    'last_owner',
  );
  members.change(workspaceId, 'owner', { role: 'owner', name: 'First' });
  members.add(workspaceId, 'ada', { role: 'owner' });
  members.change(workspaceId, 'owner', { role: 'viewer' });
  assert.equal(
    refusalOf(() => members.remove(workspaceId, 'ada')),
    'last_owner',
  );
  members.change(workspaceId, 'owner', { role: 'owner' });
  members.remove(workspaceId, 'ada');
  assert.equal(
    refusalOf(() => members.remove(workspaceId, 'owner')),
    'last_owner',
  );
});

test('two owners who remove each other at the same moment do not both succeed', async (t) => {
  const { members, owner } = await openIdentity(t);
  members.add(owner.workspaceId, 'ada', { role: 'owner' });
  members.remove(owner.workspaceId, 'owner'); // not flushed yet
  assert.equal(
    refusalOf(() => members.remove(owner.workspaceId, 'ada')),
    'last_owner',
  );
});

test('a removed member loses access at once, and old tokens stay invalid when the member is added again', async (t) => {
  const { members, owner, join, enter, store } = await openIdentity(t);
  const { secret } = join('ada', 'editor');
  await store.durable();
  members.remove(owner.workspaceId, 'ada');
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => members.read(owner.workspaceId, 'ada')),
    'not_found',
  );
  members.add(owner.workspaceId, 'ada', { role: 'editor' });
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
});

test('a token that is bound to no workspace does not open a workspace from which its user was removed', async (t) => {
  const { members, owner, workspaces, tokens, enter } = await openIdentity(t);
  const { secret } = tokens.create(owner, { name: 'free', scopes: ['workspaceRuntime:connect'] });
  const other = workspaces.create(owner, 'other');
  members.add(owner.workspaceId, 'ada', { role: 'owner' });
  members.remove(owner.workspaceId, 'owner');
  assert.equal(
    refusalOf(() => enter(secret.reveal(), 'home')),
    'not_found',
  );
  assert.equal(enter(secret.reveal(), other.id).role, 'owner');
});

test('a user who is not a member cannot be read, changed or removed', async (t) => {
  const { members, owner, workspaces, enter } = await openIdentity(t);
  const other = workspaces.create(owner, 'other');
  const elsewhere = enter('bootstrap-token-of-the-tests', other.id);
  members.add(elsewhere.workspaceId, 'bob', { role: 'viewer' });
  for (const userId of ['bob', 'nobody']) {
    assert.equal(
      refusalOf(() => members.read(owner.workspaceId, userId)),
      'not_found',
    );
    assert.equal(
      refusalOf(() => members.change(owner.workspaceId, userId, { role: 'owner' })),
      'not_found',
    );
    assert.equal(
      refusalOf(() => members.remove(owner.workspaceId, userId)),
      'not_found',
    );
  }
});

test('pages of members are in the order of user ids, and continue after a member who has left', async (t) => {
  const { members, owner, store } = await openIdentity(t);
  for (const userId of ['zoe', 'ada']) members.add(owner.workspaceId, userId, { role: 'viewer' });
  await store.durable();
  const all = members.list(owner.workspaceId, { limit: 50 });
  assert.deepEqual([all.items.map(({ userId }) => userId), all.nextCursor], [['ada', 'owner', 'zoe'], null]);
  const page = members.list(owner.workspaceId, { limit: 2 });
  assert.deepEqual(page, { items: all.items.slice(0, 2), nextCursor: 'owner' });
  assert.deepEqual(members.list(owner.workspaceId, { limit: 2, after: 'owner' }), {
    items: all.items.slice(2),
    nextCursor: null,
  });
  const { items } = members.list(owner.workspaceId, { limit: 2, after: 'nobody' });
  assert.deepEqual(
    items.map(({ userId }) => userId),
    ['owner', 'zoe'],
  );
  const bad = () => members.list(owner.workspaceId, { limit: 2, after: 'no/body' });
  assert.equal(refusalOf(bad), 'invalid_cursor');
});

test('a token created in the same turn is revoked with its member, and stays revoked when the member comes back', async (t) => {
  const { members, join, owner, enter } = await openIdentity(t);
  const { secret } = join('ada', 'editor');
  members.remove(owner.workspaceId, 'ada');
  members.add(owner.workspaceId, 'ada', { role: 'editor' });
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
});
