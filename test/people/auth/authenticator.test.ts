import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { Authenticator } from '#src/people/auth/authenticator.ts';
import { BOOTSTRAP_TOKEN, openIdentity, refusalOf, START_MS } from './identity-fixture.ts';

test('a token and a workspace determine the caller', async (t) => {
  const { authenticator, owner } = await openIdentity(t);
  const caller = authenticator.authenticate(`bearer  ${BOOTSTRAP_TOKEN}`, 'home');
  assert.deepEqual(caller, {
    workspaceId: 'home',
    userId: 'owner',
    tokenId: owner.tokenId,
    role: 'owner',
    scopes: [
      'workspaceRuntime:connect',
      'datasource:read',
      'workspace:manage',
      'server:observe',
      'server:manage',
    ],
  });
  assert.ok(Object.isFrozen(caller) && Object.isFrozen(caller.scopes));
  assert.equal(authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, 'home'), caller);
});

const NOT_TOKENS = [
  '',
  'Bearer',
  'Bearer ',
  BOOTSTRAP_TOKEN,
  `Basic ${BOOTSTRAP_TOKEN}`,
  'Bearer short',
  `Bearer ${BOOTSTRAP_TOKEN} x`,
  `Bearer ${BOOTSTRAP_TOKEN}x`,
  `Bearer ${'x'.repeat(300)}`,
  'Bearer \u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9',
];

for (const header of NOT_TOKENS) {
  test(`the header ${JSON.stringify(header.slice(0, 50))} is not a token`, async (t) => {
    const { authenticator } = await openIdentity(t);
    assert.equal(
      refusalOf(() => authenticator.authenticate(header, 'home')),
      'unauthenticated',
    );
    assert.equal(
      refusalOf(() => authenticator.authenticate(header, '')),
      'unauthenticated',
    );
  });
}

test('without a workspace a valid token gets the error that names the missing workspace, and an invalid one does not', async (t) => {
  const { authenticator } = await openIdentity(t);
  assert.equal(
    refusalOf(() => authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, '')),
    'missing_workspace',
  );
  assert.equal(
    refusalOf(() => authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}?`, '')),
    'unauthenticated',
  );
});

test("an unknown workspace, another user's workspace and a workspace outside of the token get the same response", async (t) => {
  const { authenticator, workspaces, owner, join, enter } = await openIdentity(t);
  const other = workspaces.create(owner, 'other');
  const { secret } = join('ada', 'editor');
  const answerFor = (token: string, workspace: string) => {
    try {
      authenticator.authenticate(`Bearer ${token}`, workspace);
    } catch (error) {
      return error instanceof AppError && { code: error.code, message: error.message, extras: error.extras };
    }
    return undefined;
  };
  const { code, message, extras } = notFound();
  const tries: (readonly [string, string])[] = [
    [BOOTSTRAP_TOKEN, 'nowhere'],
    [BOOTSTRAP_TOKEN, '*'],
    [BOOTSTRAP_TOKEN, 'ho me'],
    [BOOTSTRAP_TOKEN, 'x'.repeat(65)],
    [secret, other.id],
    [secret, 'nowhere'],
  ];
  for (const [token, workspace] of tries) {
    assert.deepEqual(answerFor(token, workspace), { code, message, extras }, workspace);
  }
  assert.equal(enter(BOOTSTRAP_TOKEN, other.id).workspaceId, other.id);
});

test('a token expires at its time, also for a caller in the cache', async (t) => {
  const { tokens, owner, clock, enter, authenticator } = await openIdentity(t);
  const expiresAt = '2030-01-01T01:00:00.000Z';
  const { secret } = tokens.create(owner, { name: 'short', scopes: ['workspaceRuntime:connect'], expiresAt });
  const caller = enter(secret.reveal());
  clock.ms = Date.parse(expiresAt) - 1;
  assert.equal(enter(secret.reveal()), caller);
  assert.equal(authenticator.createRevalidator()(caller), true);
  clock.ms = Date.parse(expiresAt);
  assert.equal(
    refusalOf(() => enter(secret.reveal())),
    'unauthenticated',
  );
  assert.equal(
    refusalOf(() => authenticator.authenticate(`Bearer ${secret.reveal()}`, '')),
    'unauthenticated',
  );
  assert.equal(authenticator.createRevalidator()(caller), false);
  clock.ms = START_MS;
  assert.equal(enter(secret.reveal()), caller);
});

test('the holder of a token without a workspace is accepted until the token expires or is revoked', async (t) => {
  const { tokens, owner, clock, authenticator } = await openIdentity(t);
  const expiresAt = '2030-01-01T01:00:00.000Z';
  const create = (name: string) => tokens.create(owner, { name, scopes: ['server:observe'], expiresAt });
  const [short, revoked] = [create('short'), create('revoked')];
  const told: number[] = [];
  authenticator.onExpiring = (ms) => told.push(ms);
  const [first, second] = [short, revoked].map(({ secret }) =>
    authenticator.identify(`Bearer ${secret.reveal()}`),
  );
  const mayGoOn = () => [first, second].map((holder) => authenticator.createRevalidator()(holder));
  assert.deepEqual(told, [Date.parse(expiresAt), Date.parse(expiresAt)]);
  assert.deepEqual(mayGoOn(), [true, true]);
  tokens.revoke(owner, revoked.token.id);
  assert.deepEqual(mayGoOn(), [true, false]);
  clock.ms = Date.parse(expiresAt);
  assert.deepEqual(mayGoOn(), [false, false]);
});

test('revocation acts on the next request, before anything is flushed', async (t) => {
  const { tokens, owner, join, enter, authenticator } = await openIdentity(t);
  const { token, secret, principal } = join('ada', 'editor');
  tokens.revoke(owner, token.id);
  assert.equal(
    refusalOf(() => enter(secret)),
    'unauthenticated',
  );
  assert.equal(authenticator.createRevalidator()(principal), false);
});

test('a change of role acts on the next request', async (t) => {
  const { members, owner, join, enter } = await openIdentity(t);
  const { secret, principal } = join('ada', 'editor');
  members.change(owner.workspaceId, 'ada', { role: 'viewer' });
  assert.deepEqual([principal.role, enter(secret).role], ['editor', 'viewer']);
});

test('renewing a caller gives it its present role, and refuses actions above that role', async (t) => {
  const { authenticator, members, owner, join } = await openIdentity(t);
  const { principal } = join('ada', 'editor');
  assert.equal(authenticator.renewPrincipal(principal, 'notebook.write'), principal);
  members.change(owner.workspaceId, 'ada', { role: 'viewer' });
  assert.deepEqual(authenticator.renewPrincipal(principal, 'notebook.read'), {
    ...principal,
    role: 'viewer',
  });
  assert.equal(
    refusalOf(() => authenticator.renewPrincipal(principal, 'notebook.write')),
    'role_too_low',
  );
  members.remove(owner.workspaceId, 'ada');
  assert.equal(
    refusalOf(() => authenticator.renewPrincipal(principal)),
    'unauthenticated',
    'the token belonged to the workspace',
  );
  members.add(owner.workspaceId, 'eve', { role: 'owner' });
  members.remove(owner.workspaceId, owner.userId);
  assert.equal(
    refusalOf(() => authenticator.renewPrincipal(owner)),
    'not_found',
    'the token is good for other workspaces',
  );
});

test('listeners are notified of every change of identity', async (t) => {
  const { identity, members, owner, authenticator, join } = await openIdentity(t);
  const { principal } = join('ada', 'editor');
  const seen: boolean[] = [];
  identity.onChange(() => seen.push(authenticator.createRevalidator()(principal)));
  members.change(owner.workspaceId, 'ada', { name: 'Ada' });
  members.remove(owner.workspaceId, 'ada');
  assert.deepEqual(seen, [true, false]);
});

test('callers beyond the size of the cache are still admitted', async (t) => {
  const { identity, workspaces, owner } = await openIdentity(t);
  const ids = Array.from({ length: 20 }, (_, n) => workspaces.create(owner, `w${n}`).id);
  const authenticator = new Authenticator(identity, 3);
  for (let round = 0; round < 2; round++) {
    for (const id of ids) {
      assert.equal(authenticator.authenticate(`Bearer ${BOOTSTRAP_TOKEN}`, id).workspaceId, id);
    }
  }
});
