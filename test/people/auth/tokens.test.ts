import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join as pathOf } from 'node:path';
import { test } from 'node:test';
import { SCOPES } from '#src/contract/wire/identity.ts';
import { AccessTokens } from '#src/people/auth/tokens.ts';
import { BOOTSTRAP_TOKEN, openIdentity, refusalOf, START } from './identity-fixture.ts';

const CONNECT = ['workspaceRuntime:connect'] as const;
const MANAGE = ['workspaceRuntime:connect', 'workspace:manage'] as const;

test('a token is 256 random bits, shown once', async (t) => {
  const { tokens, owner } = await openIdentity(t);
  const first = tokens.create(owner, { name: 'first', scopes: CONNECT });
  const second = tokens.create(owner, { name: 'second', scopes: CONNECT });
  assert.match(first.secret.reveal(), /^trp_[A-Za-z0-9_-]{43}$/);
  assert.notEqual(first.secret.reveal(), second.secret.reveal());
  assert.deepEqual(first.token, {
    id: first.token.id,
    name: 'first',
    userId: 'owner',
    workspaceId: null,
    scopes: CONNECT,
    createdAt: START,
    createdBy: 'owner',
    expiresAt: null,
  });
  assert.deepEqual(tokens.read(owner, first.token.id), first.token);
});

test('the disk contains hashes of tokens, but no token', async (t) => {
  const { tokens, owner, store, dataDir } = await openIdentity(t);
  const { secret } = tokens.create(owner, { name: 'x', scopes: CONNECT });
  await store.durable();
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  assert.ok(files.length > 0);
  for (const file of files) {
    const bytes = readFileSync(pathOf(file.parentPath, file.name));
    assert.equal(bytes.includes(secret.reveal()) || bytes.includes(BOOTSTRAP_TOKEN), false, file.name);
  }
});

test('a token that an owner makes for a member is bound to the workspace', async (t) => {
  const { owner, workspaces, join, enter } = await openIdentity(t);
  const other = workspaces.create(owner, 'other');
  const { token, secret } = join('ada', 'owner', SCOPES);
  assert.deepEqual([token.workspaceId, token.userId, token.createdBy], ['home', 'ada', 'owner']);
  assert.equal(
    refusalOf(() => enter(secret, other.id)),
    'not_found',
  );
});

test('a token that a user makes for themselves is bound like the token of the request', async (t) => {
  const { tokens, owner, join } = await openIdentity(t);
  const ada = join('ada', 'viewer', MANAGE);
  assert.equal(tokens.create(owner, { name: 'x', scopes: CONNECT }).token.workspaceId, null);
  assert.equal(tokens.create(ada.principal, { name: 'x', scopes: CONNECT }).token.workspaceId, 'home');
  assert.equal(
    tokens.create(ada.principal, { name: 'x', scopes: CONNECT, userId: 'ada' }).token.workspaceId,
    'home',
  );
});

test('no caller can grant a scope that the token of the request lacks, not even an owner', async (t) => {
  const { tokens, owner, enter, join } = await openIdentity(t);
  join('ada', 'viewer');
  const { secret } = tokens.create(owner, { name: 'lesser', scopes: MANAGE });
  const lesser = enter(secret.reveal());
  for (const userId of [undefined, 'ada']) {
    const user = userId === undefined ? {} : { userId };
    const give = () => tokens.create(lesser, { name: 'x', scopes: ['datasource:read'], ...user });
    assert.equal(refusalOf(give), 'missing_scope');
  }
});

test('only an owner can create a token for somebody else, and only for a member', async (t) => {
  const { tokens, owner, join } = await openIdentity(t);
  const editor = join('ada', 'editor', MANAGE).principal;
  join('bob', 'viewer');
  const make = (by: typeof editor, userId: string) => () =>
    tokens.create(by, { name: 'x', scopes: CONNECT, userId });
  assert.equal(refusalOf(make(editor, 'bob')), 'role_too_low');
  assert.equal(refusalOf(make(owner, 'stranger')), 'not_found');
  assert.equal(make(owner, 'bob')().token.userId, 'bob');
});

test('a token can expire, but not in the past', async (t) => {
  const { tokens, owner } = await openIdentity(t);
  const make = (expiresAt: string) => tokens.create(owner, { name: 'x', scopes: CONNECT, expiresAt }).token;
  assert.equal(make('2030-01-01T02:00:00+01:00').expiresAt, '2030-01-01T01:00:00.000Z');
  for (const past of [START, '2029-12-31T23:59:59Z']) {
    assert.equal(
      refusalOf(() => make(past)),
      'invalid_request',
    );
  }
});

test('users see and revoke their own tokens, and an owner also tokens that are bound to the workspace', async (t) => {
  const { tokens, owner, join, store } = await openIdentity(t);
  const ada = join('ada', 'editor', MANAGE);
  const bob = join('bob', 'viewer', MANAGE);
  await store.durable();
  const namesFor = (principal: typeof owner) =>
    tokens.list(principal, { limit: 50 }).items.map(({ name }) => name);
  assert.deepEqual(namesFor(owner), ['bootstrap', 'of ada', 'of bob']);
  assert.deepEqual(namesFor(ada.principal), ['of ada']);
  assert.deepEqual(namesFor(bob.principal), ['of bob']);
  for (const attempt of [tokens.read.bind(tokens), tokens.revoke.bind(tokens)]) {
    assert.equal(
      refusalOf(() => attempt(ada.principal, bob.token.id)),
      'not_found',
    );
    assert.equal(
      refusalOf(() => attempt(ada.principal, owner.tokenId)),
      'not_found',
    );
    assert.equal(
      refusalOf(() => attempt(ada.principal, 'tok_none')),
      'not_found',
    );
  }
  tokens.revoke(owner, bob.token.id);
  tokens.revoke(ada.principal, ada.token.id);
  await store.durable();
  assert.deepEqual(namesFor(owner), ['bootstrap']);
});

test('a token bound to a workspace gives no access to its user’s unbound tokens or to tokens of another workspace', async (t) => {
  const { tokens, owner, workspaces, members, enter, store } = await openIdentity(t);
  const other = workspaces.create(owner, 'other');
  members.add(owner.workspaceId, 'ada', { role: 'owner' });
  const inOther = enter(BOOTSTRAP_TOKEN, other.id);
  members.add(inOther.workspaceId, 'ada', { role: 'owner' });
  const home = tokens.create(owner, { name: 'home', scopes: SCOPES, userId: 'ada' });
  const away = tokens.create(inOther, { name: 'away', scopes: SCOPES, userId: 'ada' });
  await store.durable();
  const ada = enter(home.secret.reveal());
  assert.deepEqual(tokens.list(ada, { limit: 50 }), { items: [home.token], nextCursor: null });
  assert.equal(
    refusalOf(() => tokens.revoke(ada, away.token.id)),
    'not_found',
  );
  assert.equal(
    refusalOf(() => tokens.revoke(ada, owner.tokenId)),
    'not_found',
  );
});

test('the list is paged, oldest first, and refuses a cursor that is not one of its ids', async (t) => {
  const { tokens, owner, join, store } = await openIdentity(t);
  join('ada', 'viewer');
  for (const name of ['a', 'b']) tokens.create(owner, { name, scopes: CONNECT });
  await store.durable();
  const all = tokens.list(owner, { limit: 100 }).items;
  assert.deepEqual(
    all.map(({ name }) => name),
    ['bootstrap', 'of ada', 'a', 'b'],
  );
  const first = tokens.list(owner, { limit: 3 });
  assert.deepEqual(first, { items: all.slice(0, 3), nextCursor: all[2]?.id });
  assert.deepEqual(tokens.list(owner, { limit: 3, after: all[2]?.id }), {
    items: all.slice(3),
    nextCursor: null,
  });
  assert.deepEqual(tokens.list(owner, { limit: 4 }).nextCursor, null);
  assert.equal(
    refusalOf(() => tokens.list(owner, { limit: 1, after: 'tok_none' })),
    'invalid_cursor',
  );
});

test('if the life of tokens is limited, a new token without an expiry gets the longest life, and a later expiry is refused', async (t) => {
  const { identity, owner, clock, enter } = await openIdentity(t);
  const tokens = new AccessTokens(identity, 30);
  const at = (days: number) => new Date(clock.ms + days * 86_400_000).toISOString();
  const { token, secret } = tokens.create(owner, { name: 'x', scopes: CONNECT });
  assert.equal(token.expiresAt, at(30));
  assert.equal(tokens.create(owner, { name: 'x', scopes: CONNECT, expiresAt: at(7) }).token.expiresAt, at(7));
  const refused = () => tokens.create(owner, { name: 'x', scopes: CONNECT, expiresAt: at(31) });
  assert.equal(refusalOf(refused), 'invalid_request');
  assert.equal(enter(secret.reveal()).userId, 'owner');
  clock.ms += 30 * 86_400_000 + 1;
  assert.equal(
    refusalOf(() => enter(secret.reveal())),
    'unauthenticated',
  );
});
