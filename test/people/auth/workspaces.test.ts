import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SCOPES } from '#src/contract/wire/identity.ts';
import { BOOTSTRAP_TOKEN, openIdentity, refusalOf, START } from './identity-fixture.ts';

test('the creator of a workspace owns it', async (t) => {
  const { workspaces, members, owner, enter } = await openIdentity(t);
  const created = workspaces.create(owner, 'Research');
  assert.deepEqual(created, { id: created.id, name: 'Research', createdAt: START });
  assert.match(created.id, /^ws_/);
  const inside = enter(BOOTSTRAP_TOKEN, created.id);
  assert.equal(inside.role, 'owner');
  assert.equal(members.read(inside.workspaceId, 'owner').role, 'owner');
  assert.deepEqual(workspaces.read(owner, created.id), created);
});

test('a token that is bound to a workspace cannot create a workspace or see another one', async (t) => {
  const { workspaces, owner, join, store } = await openIdentity(t);
  workspaces.create(owner, 'other');
  const { principal } = join('ada', 'owner', SCOPES);
  await store.durable();
  assert.equal(
    refusalOf(() => workspaces.create(principal, 'mine')),
    'missing_scope',
  );
  assert.deepEqual(workspaces.list(principal, { limit: 50 }), {
    items: [{ id: 'home', name: 'Default', createdAt: START }],
    nextCursor: null,
  });
});

test('a workspace is not found by users who are not members', async (t) => {
  const { workspaces, owner, members, enter } = await openIdentity(t);
  const other = workspaces.create(owner, 'other');
  const inside = enter(BOOTSTRAP_TOKEN, other.id);
  members.add(inside.workspaceId, 'ada', { role: 'owner' });
  members.remove(inside.workspaceId, 'owner');
  for (const id of [other.id, 'nowhere']) {
    assert.equal(
      refusalOf(() => workspaces.read(owner, id)),
      'not_found',
    );
    assert.equal(
      refusalOf(() => workspaces.list(owner, { limit: 1, after: `${id}/` })),
      'invalid_cursor',
    );
  }
});

test("the list of one's workspaces is paged", async (t) => {
  const { workspaces, owner, store } = await openIdentity(t);
  const made = ['a', 'b', 'c'].map((name) => workspaces.create(owner, name));
  await store.durable();
  const home = { id: 'home', name: 'Default', createdAt: START };
  assert.deepEqual(workspaces.list(owner, { limit: 2 }), { items: [home, made[0]], nextCursor: made[0]?.id });
  assert.deepEqual(workspaces.list(owner, { limit: 2, after: made[0]?.id }), {
    items: made.slice(1),
    nextCursor: null,
  });
});
