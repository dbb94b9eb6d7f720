import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import type { TokenId } from '#src/base/ids.ts';
import { MAX_UNCHECKED_MS } from '#src/people/auth/authenticator.ts';
import { BrowserSignIns, MAX_SESSIONS_PER_USER } from '#src/people/auth/browser-sign-ins.ts';
import { claimIn } from '#src/people/auth/provider/identity-provider.ts';
import { rolesOf } from '#src/people/auth/provider/provider-accounts.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  accessTokenRecords,
  providerAccounts,
  sessionUses,
  userSessions,
} from '#storage/records/identity.ts';
import { BOOTSTRAP_TOKEN, openIdentity, refusalOf } from './identity-fixture.ts';

const IDLE_S = 600;
const MAX_S = 3600;

async function openSessions(t: TestContext) {
  const fixture = await openIdentity(t);
  const sessions = new BrowserSignIns(fixture.identity, { signInIdleS: IDLE_S, signInMaxS: MAX_S });
  const { authenticator } = fixture;
  const begin = (token = BOOTSTRAP_TOKEN) => {
    const { id, secret } = sessions.begin(authenticator.identify(`Bearer ${token}`));
    return { id, secret: secret.reveal() };
  };
  const enter = (secret: string, workspaceId = 'home') =>
    authenticator.authenticateSession(secret, workspaceId);
  return { ...fixture, sessions, begin, enter };
}

test('a session has the user, the role and the scopes of the token with which it began', async (t) => {
  const { begin, enter, owner, join, authenticator } = await openSessions(t);
  const { id, secret } = begin();
  assert.deepEqual(enter(secret), { ...owner, tokenId: id });
  const viewer = join('vera', 'viewer', ['workspaceRuntime:connect']);
  const theirs = begin(viewer.token === undefined ? '' : viewer.secret);
  assert.deepEqual(enter(theirs.secret), { ...viewer.principal, tokenId: theirs.id });
  assert.equal(authenticator.identifySignIn(theirs.secret).isBound, true);
});

test("only a hash of a session's secret is stored; a session is not accepted as an access token, nor a token as a session", async (t) => {
  const { begin, enter, store, authenticator } = await openSessions(t);
  const { id, secret } = begin();
  const record = JSON.stringify(store.get(accessTokenRecords, SYSTEM, id));
  assert.ok(!record.includes(secret.slice(4)));
  assert.equal(
    refusalOf(() => authenticator.authenticate(`Bearer ${secret}`, 'home')),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => authenticator.identify(`Bearer ${secret}`)),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => enter(BOOTSTRAP_TOKEN)),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => enter(`trs_${'A'.repeat(43)}`)),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => authenticator.identifySignIn('')),
    'unauthenticated',
  );
});

test('a session ends after its idle time, which each use starts again', async (t) => {
  const { begin, enter, clock, authenticator } = await openSessions(t);
  const { id, secret } = begin();
  const used = enter(secret);
  clock.ms += (IDLE_S - 1) * 1000;
  enter(secret);
  clock.ms += (IDLE_S - 1) * 1000;
  enter(secret);
  assert.equal(authenticator.createRevalidator()(used), true);
  clock.ms += IDLE_S * 1000;
  assert.equal(authenticator.createRevalidator()(used), false, 'open streams end as well');
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => authenticator.identifySignIn(secret)),
    'unauthenticated',
  );
  assert.ok(id.startsWith('tok_'));
});

test('a session in constant use ends at its maximum age', async (t) => {
  const { begin, enter, clock } = await openSessions(t);
  const { secret } = begin();
  for (let s = 300; s < MAX_S; s += 300) {
    clock.ms += 300_000;
    enter(secret);
  }
  clock.ms += 299_999;
  enter(secret);
  clock.ms += 1;
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
});

test('the use of a session is stored at most some twenty times per idle time', async (t) => {
  const { begin, enter, clock, store } = await openSessions(t);
  const { id, secret } = begin();
  const times = new Set<number | undefined>();
  for (let i = 0; i < 300; i++) {
    clock.ms += 1000;
    enter(secret);
    times.add(store.get(sessionUses, SYSTEM, id)?.usedAtMs);
  }
  assert.ok(times.size <= 11, `${times.size} in half of the idle time`);
});

test('a session ends when its token is revoked or expires', async (t) => {
  const { begin, enter, join, tokens, owner, clock } = await openSessions(t);
  const first = join('ada', 'editor');
  const { secret } = begin(first.secret);
  enter(secret);
  tokens.revoke(owner, first.token.id);
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );

  const brief = tokens.create(owner, {
    name: 'brief',
    scopes: ['workspaceRuntime:connect'],
    expiresAt: new Date(clock.ms + 60_000).toISOString(),
  });
  const short = begin(brief.secret.reveal());
  enter(short.secret);
  clock.ms += 60_000;
  assert.equal(
    refusalOf(() => enter(short.secret)),
    'unauthenticated',
  );
});

test('a session ends when its user is removed from the workspace of its token, or from the last workspace', async (t) => {
  const { begin, enter, join, members, tokens, workspaces, owner, authenticator } = await openSessions(t);
  const ada = join('ada', 'editor');
  const { secret } = begin(ada.secret);
  enter(secret);
  members.remove(owner.workspaceId, 'ada');
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );

  const other = workspaces.create(owner, 'Other');
  const elsewhere = authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, other.id);
  members.add(elsewhere.workspaceId, 'eve', { role: 'owner' });
  members.add(owner.workspaceId, 'eve', { role: 'viewer' });
  const unbound = tokens.create(owner, { name: 'mine', scopes: ['workspaceRuntime:connect'] });
  const mine = begin(unbound.secret.reveal());
  members.remove(elsewhere.workspaceId, 'owner');
  assert.equal(
    refusalOf(() => enter(mine.secret, other.id)),
    'not_found',
  );
  assert.equal(enter(mine.secret).workspaceId, 'home', 'the user is still a member elsewhere');
});

test('a session that its user ends is refused at once, and a token cannot be ended in this way', async (t) => {
  const { begin, enter, sessions, authenticator, store } = await openSessions(t);
  const { id, secret } = begin();
  sessions.end(authenticator.identifySignIn(secret));
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
  assert.equal(store.get(sessionUses, SYSTEM, id), undefined);
  assert.equal(store.has(userSessions, SYSTEM, 'owner', id), false);
  assert.equal(
    refusalOf(() => sessions.end(authenticator.identify(`Bearer ${BOOTSTRAP_TOKEN}`))),
    'invalid_request',
  );
  assert.equal(
    refusalOf(() => sessions.end({ ...authenticator.identify(`Bearer ${BOOTSTRAP_TOKEN}`) })),
    'invalid_request',
  );
});

test('a session cannot begin another session', async (t) => {
  const { begin, sessions, authenticator } = await openSessions(t);
  const { secret } = begin();
  assert.equal(
    refusalOf(() => sessions.begin(authenticator.identifySignIn(secret))),
    'invalid_request',
  );
  assert.equal(
    refusalOf(() => sessions.begin({ ...authenticator.identifySignIn(secret), tokenId: 'tok_0' as TokenId })),
    'unauthenticated',
  );
});

test('a user who is not a member of any workspace cannot sign in', async (t) => {
  const { begin, join, members, owner, sessions, authenticator } = await openSessions(t);
  const ada = join('ada', 'editor');
  const holder = authenticator.identify(`Bearer ${ada.secret}`);
  members.add(owner.workspaceId, 'bob', { role: 'viewer' });
  begin(ada.secret);
  assert.equal(
    refusalOf(() => sessions.begin({ ...holder, userId: 'nobody' as typeof holder.userId })),
    'no_workspace',
  );
});

test('a user has a limited number of sessions: a further session ends the oldest, and expired sessions are removed', async (t) => {
  const { begin, enter, clock, store } = await openSessions(t);
  const begun = Array.from({ length: MAX_SESSIONS_PER_USER }, () => {
    clock.ms += 1000;
    return begin().secret;
  });
  for (const secret of begun) enter(secret);
  clock.ms += 1000;
  const last = begin().secret;
  assert.equal(
    refusalOf(() => enter(begun[0]!)),
    'unauthenticated',
  );
  for (const secret of [...begun.slice(1), last]) enter(secret);
  assert.equal(store.idsUnder(userSessions, SYSTEM, 'owner').size, MAX_SESSIONS_PER_USER);
  clock.ms += MAX_S * 1000;
  begin();
  assert.equal(store.idsUnder(userSessions, SYSTEM, 'owner').size, 1);
});

test('the list of access tokens has no sessions, and the owner of a session can revoke it by its id', async (t) => {
  const { begin, enter, tokens, owner } = await openSessions(t);
  const { id, secret } = begin();
  const { items } = tokens.list(owner, { limit: 100 });
  assert.ok(!items.some((token) => token.id === id));
  assert.ok(!('session' in tokens.read(owner, id)));
  tokens.revoke(owner, id);
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
});

test('a session by the identity provider is valid for a quarter of an hour without an answer, but not once the person is gone', async (t) => {
  const { sessions, enter, clock, store, join, authenticator } = await openSessions(t);
  const ada = join('ada', 'viewer');
  const { userId } = ada.principal;
  const account = { issuer: 'https://login.example', subject: '1', managed: ['home'], isActive: true };
  const note = (isActive: boolean) =>
    store.write((tx) =>
      tx.put(providerAccounts, { ...account, isActive, checkedAtMs: clock.ms }, SYSTEM, userId),
    );
  note(true);
  const { secret } = sessions.beginForPerson(userId);
  const use = () => enter(secret.reveal());
  for (let minutes = 0; minutes < 14; minutes += 7) {
    clock.ms += 7 * 60_000;
    use();
  }
  clock.ms += 60_000;
  assert.equal(refusalOf(use), 'unauthenticated', 'the provider could not be asked for too long');
  note(true);
  assert.equal(use().role, 'viewer');
  assert.equal(authenticator.isBound(use()), true, 'it does not administer the server');
  note(false);
  clock.ms += MAX_UNCHECKED_MS;
  assert.equal(refusalOf(use), 'unauthenticated');
  assert.equal(
    refusalOf(() => authenticator.identify(`Bearer ${ada.secret}`)),
    'unauthenticated',
  );
});

test('when several groups give a role in a workspace, the highest role counts', () => {
  const table = ['a=ws_1:viewer', 'b team=ws_1:owner', 'a=ws_2:editor', 'c=ws_1:editor', 'a/b=ws_3:viewer'];
  const roles = (...groups: string[]) => Object.fromEntries(rolesOf(table, new Set(groups)));
  assert.deepEqual(roles('a', 'c'), { ws_1: 'editor', ws_2: 'editor' });
  assert.deepEqual(roles('b team', 'a', 'c'), { ws_1: 'owner', ws_2: 'editor' });
  assert.deepEqual(roles('a/b'), { ws_3: 'viewer' });
  assert.deepEqual(roles('b', ''), {});
});

test('everybody belongs to the group * of the role table, and the highest role still counts', () => {
  const table = ['*=ws_1:viewer', 'a=ws_1:editor', '*=ws_2:editor'];
  const roles = (...groups: string[]) => Object.fromEntries(rolesOf(table, new Set(groups)));
  assert.deepEqual(roles(), { ws_1: 'viewer', ws_2: 'editor' });
  assert.deepEqual(roles('a'), { ws_1: 'editor', ws_2: 'editor' });
});

test('the groups may be in a nested claim, but a claim with exactly that name takes precedence', () => {
  const claims = {
    realm_access: { roles: ['a'] },
    'https://example.com/groups': ['b'],
    'x.y': ['c'],
    x: { y: ['d'] },
  };
  assert.deepEqual(claimIn(claims, 'realm_access.roles'), ['a']);
  assert.deepEqual(claimIn(claims, 'https://example.com/groups'), ['b']);
  assert.deepEqual(claimIn(claims, 'x.y'), ['c']);
  for (const name of ['realm_access.none', 'realm_access.roles.length', 'constructor.name', 'none'])
    assert.equal(claimIn(claims, name), undefined, name);
});
