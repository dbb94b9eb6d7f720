/**
 * Signing in with a real provider of OpenID Connect: first request by request, and then in Chromium
 * as a person does it.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { OwnAccount } from '#src/contract/wire/identity.ts';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { eventually } from '#test/support/processes.ts';
import { removeAfter } from '#test/support/remove-folder.ts';
import { OWNER, type Owner, startServer, type TestServer } from '#test/support/server-fixture.ts';
import { CLIENT_ID, CLIENT_SECRET, TestIdentityProvider } from '#test/support/stand-ins/identity-provider.ts';

const workspace = { 'service-workspace-id': OWNER.workspaceId };
const ADA = 'ada@example.com';

interface Fixture {
  readonly server: TestServer;
  readonly provider: TestIdentityProvider;
}

async function start(owner: Owner, overrides: Record<string, string> = {}): Promise<Fixture> {
  const provider = await TestIdentityProvider.start(owner);
  const folder = mkdtempSync(join(tmpdir(), 'troupe-oidc-'));
  removeAfter(owner, folder);
  const secretFile = join(folder, 'secret');
  writeFileSync(secretFile, `${CLIENT_SECRET}\n`);
  const server = await startServer(owner, {
    TROUPE_OIDC_ISSUER: provider.issuer,
    TROUPE_OIDC_CLIENT_ID: CLIENT_ID,
    TROUPE_OIDC_CLIENT_SECRET_FILE: secretFile,
    TROUPE_OIDC_NAME: 'Example Inc.',
    TROUPE_OIDC_ROLES: `readers=${OWNER.workspaceId}:viewer, data team=${OWNER.workspaceId}:editor, admins=${OWNER.workspaceId}:owner`,
    TROUPE_OIDC_CHECK_S: '1',
    ...overrides,
  });
  provider.register(server.baseUrl);
  return { server, provider };
}

const shared = await start(test);

function visit({ server }: Fixture, path: string, cookie = ''): Promise<Response> {
  return fetch(new URL(path, server.baseUrl), {
    redirect: 'manual',
    headers: { cookie, accept: 'text/html', ...workspace },
  });
}

function cookiesOf(response: Response): Map<string, string> {
  return new Map(
    response.headers.getSetCookie().map((line) => {
      const [name = '', value = ''] = line.split(';')[0]!.split('=');
      return [name.replace(/-\d+$/, ''), value];
    }),
  );
}

/** Begins to sign in, and resolves with the address at the provider and the cookie of the attempt. */
async function begin(fixture: Fixture, to = '/'): Promise<{ url: string; attempt: string }> {
  const response = await visit(fixture, `/sign-in/provider?to=${encodeURIComponent(to)}`);
  assert.equal(response.status, 303);
  const attempt = cookiesOf(response).get('troupe-sign-in') ?? '';
  return { url: response.headers.get('location') ?? '', attempt };
}

function attemptCookie({ server }: Fixture, attempt: string): string {
  return `troupe-sign-in-${new URL(server.baseUrl).port}=${attempt}`;
}

function sessionCookie({ server }: Fixture, response: Response): string {
  const secret = cookiesOf(response).get('troupe-session');
  return secret === undefined ? '' : `troupe-session-${new URL(server.baseUrl).port}=${secret}`;
}

/** Signs a person in, and resolves with the last answer of the server. */
async function complete(fixture: Fixture, login: string, to = '/'): Promise<Response> {
  const { url, attempt } = await begin(fixture, to);
  const callback = await fixture.provider.logIn(url, login);
  return visit(fixture, callback, attemptCookie(fixture, attempt));
}

async function signIn(fixture: Fixture, login: string): Promise<string> {
  const response = await complete(fixture, login);
  const cookie = sessionCookie(fixture, response);
  assert.notEqual(cookie, '', `${response.status} ${response.headers.get('location')}`);
  return cookie;
}

/** Returns the page to which a refused sign-in leads. */
function refusalOf(response: Response): string {
  assert.equal(sessionCookie({ ...shared }, response), '', 'there is no session');
  return response.headers.get('location') ?? '';
}

/** Returns the sealed attempt with another character at a place. */
function damaged(attempt: string, at: number): string {
  return `${attempt.slice(0, at)}${attempt[at] === 'A' ? 'B' : 'A'}${attempt.slice(at + 1)}`;
}

test('a person signs in with PKCE, state and nonce, and has the role of their groups', async () => {
  const { provider, server } = shared;
  provider.people.set(ADA, { groups: ['readers', 'data team', 'unknown'], name: 'Ada' });
  const { url } = await begin(shared);
  const asked = new URL(url).searchParams;
  assert.equal(asked.get('code_challenge_method'), 'S256');
  for (const name of ['code_challenge', 'state', 'nonce'])
    assert.ok((asked.get(name) ?? '').length >= 40, name);
  const cookie = await signIn(shared, ADA);
  const me = (await (await visit(shared, '/api/v3/me', cookie)).json()) as {
    user: { id: string };
    workspaces: { id: string; role: string }[];
  };
  assert.equal(me.user.id, ADA);
  assert.deepEqual(
    me.workspaces.map(({ id, role }) => [id, role]),
    [[OWNER.workspaceId, 'editor']],
  );
  assert.equal((await server.client.members.get(ADA)).name, 'Ada');
  const { items } = await server.client.audit({ order: 'desc', userId: ADA, action: 'sign-in' });
  assert.equal(items[0]?.action, 'sign-in');
});

test('further parameters in the settings are part of the address for signing in', async (t) => {
  const own = await start(t, { TROUPE_OIDC_PARAMETERS: 'prompt=consent&access_type=offline' });
  const asked = new URL((await begin(own)).url).searchParams;
  assert.deepEqual([asked.get('prompt'), asked.get('access_type')], ['consent', 'offline']);
  assert.equal(asked.get('code_challenge_method'), 'S256');
  own.provider.people.set(ADA, { groups: ['readers'] });
  await signIn(own, ADA);
});

test('an answer with a wrong state, or without the cookie of the attempt, signs nobody in', async () => {
  const { provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const { url, attempt } = await begin(shared);
  const callback = new URL(await provider.logIn(url, ADA));
  assert.equal(refusalOf(await visit(shared, callback.href)), '../sign-in?refused=expired');
  const other = await begin(shared);
  assert.equal(
    refusalOf(await visit(shared, callback.href, attemptCookie(shared, other.attempt))),
    '../sign-in?refused=expired',
  );
  callback.searchParams.set('state', 'x'.repeat(43));
  assert.equal(
    refusalOf(await visit(shared, callback.href, attemptCookie(shared, attempt))),
    '../sign-in?refused=expired',
  );
});

test('an answer with the cookie of an attempt that this server has not made is refused before the provider is asked', async () => {
  const { provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const { url, attempt } = await begin(shared);
  const callback = new URL(await provider.logIn(url, ADA));
  const state = callback.searchParams.get('state') ?? '';
  const [verifier, nonce] = ['v'.repeat(43), 'n'.repeat(43)];
  const invented = Buffer.from(JSON.stringify({ state, nonce, verifier, to: '/' })).toString('base64url');
  const asked = provider.requests.length;
  const sealedAt = attempt.indexOf('.') + 1;
  for (const kept of [
    invented,
    `${attempt.slice(0, sealedAt)}${invented}`,
    `unknown${attempt.slice(sealedAt - 1)}`,
    damaged(attempt, sealedAt),
    damaged(attempt, attempt.length - 2),
    'x'.repeat(15_000),
  ]) {
    const response = await visit(shared, callback.href, attemptCookie(shared, kept));
    assert.equal(refusalOf(response), '../sign-in?refused=expired', kept.slice(0, 80));
  }
  assert.equal(provider.requests.length, asked);
  assert.notEqual(
    sessionCookie(shared, await visit(shared, callback.href, attemptCookie(shared, attempt))),
    '',
  );
});

test('an answer of another issuer signs nobody in', async () => {
  const { provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const { url, attempt } = await begin(shared);
  const callback = new URL(await provider.logIn(url, ADA));
  callback.searchParams.set('iss', 'https://evil.example');
  const mixed = await visit(shared, callback.href, attemptCookie(shared, attempt));
  assert.equal(refusalOf(mixed), '../sign-in?refused=failed');
});

test('a used code is refused, and the browser forgets the attempt', async () => {
  const { provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const { url, attempt } = await begin(shared);
  const callback = await provider.logIn(url, ADA);
  const first = await visit(shared, callback, attemptCookie(shared, attempt));
  assert.notEqual(sessionCookie(shared, first), '');
  assert.ok(first.headers.getSetCookie().some((line) => /^troupe-sign-in-\d+=;.*Max-Age=0/.test(line)));
  const again = await visit(shared, callback, attemptCookie(shared, attempt));
  assert.equal(refusalOf(again), '../sign-in?refused=failed');
});

test('after signing in the browser is only sent to a page of this server', async () => {
  const { server, provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const led = async (to: string) => (await complete(shared, ADA, to)).headers.get('location');
  assert.equal(await led('/console#/runs'), `${server.baseUrl}/console#/runs`);
  for (const to of [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:1',
  ])
    assert.equal(await led(to), `${server.baseUrl}/`, to);
});

test('a person cannot sign in without a verified mail address, without a workspace, or as a user that exists under another name', async () => {
  const { provider } = shared;
  provider.people.set('eve@example.com', { groups: ['readers'], emailVerified: false });
  assert.equal(refusalOf(await complete(shared, 'eve@example.com')), '../sign-in?refused=unknown');
  provider.people.set('bob@example.com', { groups: ['others'] });
  assert.equal(refusalOf(await complete(shared, 'bob@example.com')), '../sign-in?refused=no-workspace');
  provider.people.set('not a user', { groups: ['admins'] });
  assert.equal(refusalOf(await complete(shared, 'not a user')), '../sign-in?refused=unknown');
});

test('with a claim other than the mail address, a person cannot become a user that the provider did not create', async (t) => {
  const fixture = await start(t, { TROUPE_OIDC_USER_CLAIM: 'sub' });
  fixture.provider.people.set('owner', { groups: ['readers'] });
  assert.equal(refusalOf(await complete(fixture, 'owner')), '../sign-in?refused=unknown');
  fixture.provider.people.set('grace', { groups: ['readers'] });
  await signIn(fixture, 'grace');
});

test('a person whom an owner has added keeps the given role without a group', async () => {
  const { server, provider } = shared;
  await server.client.members.create({ userId: 'carl@example.com', role: 'editor' });
  provider.people.set('carl@example.com', { groups: [] });
  const cookie = await signIn(shared, 'carl@example.com');
  const me = (await (await visit(shared, '/api/v3/me', cookie)).json()) as { workspaces: { role: string }[] };
  assert.deepEqual(
    me.workspaces.map(({ role }) => role),
    ['editor'],
  );
});

test('when the provider removes a group, its role is gone, and for a person without a group the session, its streams and its tokens end', async () => {
  const { server, provider } = shared;
  const dora = 'dora@example.com';
  provider.people.set(dora, { groups: ['admins'] });
  const cookie = await signIn(shared, dora);
  const create = await fetch(`${server.baseUrl}/api/v3/access-tokens`, {
    method: 'POST',
    headers: { cookie, ...workspace, origin: server.baseUrl, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'of dora', scopes: ['workspaceRuntime:connect'] }),
  });
  const { token, workspaceId } = (await create.json()) as { token: string; workspaceId: string };
  assert.equal(workspaceId, OWNER.workspaceId, 'such a token is bound');
  provider.people.set(dora, { groups: ['readers'] });
  await eventually('dora is a viewer', async () => (await server.client.members.get(dora)).role === 'viewer');
  const stream = await visit(shared, '/api/v3/server/events', cookie);
  const ended = stream.text();
  provider.people.set(dora, { groups: [] });
  await eventually(
    'the session has ended',
    async () => (await visit(shared, '/api/v3/me', cookie)).status === 401,
  );
  await ended;
  const byToken = await fetch(`${server.baseUrl}/api/v3/me`, {
    headers: { authorization: `Bearer ${token}` },
  });
  assert.equal(byToken.status, 401);
  await assert.rejects(server.client.members.get(dora), { code: 'not_found' });
});

test('a person who is removed at the provider loses all access, including tokens, and gets access again after coming back', async () => {
  const { server, provider } = shared;
  const finn = 'finn@example.com';
  provider.people.set(finn, { groups: ['data team'] });
  const cookie = await signIn(shared, finn);
  assert.equal((await visit(shared, '/api/v3/me', cookie)).status, 200);
  const scopes = ['workspaceRuntime:connect'] as const;
  const { token } = await server.client.accessTokens.create({
    name: 'of finn',
    userId: finn,
    scopes: [...scopes],
  });
  const statusOfToken = async () => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${server.baseUrl}/api/v3/me`, { headers })).status;
  };
  assert.equal(await statusOfToken(), 200);
  provider.people.delete(finn);
  await eventually(
    'the session has ended',
    async () => (await visit(shared, '/api/v3/me', cookie)).status === 401,
  );
  assert.equal(await statusOfToken(), 401);
  provider.people.set(finn, { groups: ['data team'] });
  const again = await signIn(shared, finn);
  assert.equal((await visit(shared, '/api/v3/notebooks', again)).status, 200);
  assert.equal(await statusOfToken(), 200);
});

test('a silent provider ends no session, and is logged once until it answers again', async () => {
  const { provider, server } = shared;
  const warnings = () =>
    server.log.filter(({ msg }) => msg.includes('could not be asked about a person')).length;
  const before = warnings();
  provider.people.set(ADA, { groups: ['readers'] });
  const cookie = await signIn(shared, ADA);
  provider.isDown = true;
  const asked = provider.requests.length;
  await eventually('the provider was asked', () => provider.requests.length > asked + 2);
  assert.equal((await visit(shared, '/api/v3/me', cookie)).status, 200);
  await eventually(
    'several people were asked about, several times',
    () => provider.requests.length > asked + 12,
  );
  assert.equal(warnings() - before, 1);
  const begun = await visit(shared, '/sign-in/provider');
  assert.equal(begun.status, 303, 'the metadata are known already');
  provider.isDown = false;
});

test('a provider that has too many requests, or that rejects this server, signs nobody out', async (t) => {
  const fixture = await start(t);
  const { provider } = fixture;
  provider.register(fixture.server.baseUrl, { claimsInIdToken: false });
  provider.people.set(ADA, { groups: ['readers'] });
  const cookie = await signIn(fixture, ADA);
  const isSignedIn = async () => (await visit(fixture, '/api/v3/me', cookie)).status === 200;
  const json = { 'content-type': 'application/json' };
  const asked = (path: string) => provider.requests.filter((request) => request.endsWith(path)).length;
  const answers = [
    ['/token', { status: 429, headers: { 'retry-after': '0' } }],
    ['/token', { status: 503, headers: { 'retry-after': '0' } }],
    ['/token', { status: 429, headers: { 'retry-after': '0', ...json }, body: '{"error":"slow_down"}' }],
    ['/token', { status: 401, headers: json, body: '{"error":"invalid_client"}' }],
    // The provider has issued a new refresh token by then, and would end the sign-in if the used one was sent again.
    ['/me', { status: 503, headers: { 'retry-after': '0' } }],
    ['/me', { status: 429, headers: { 'retry-after': '0' } }],
    ['/me', { status: 500 }],
  ] as const;
  for (const [path, answer] of answers) {
    const before = asked(path);
    provider.force(path, answer);
    await eventually('the provider was asked again', () => asked(path) >= before + 2);
    assert.ok(await isSignedIn(), `${path} ${answer.status}`);
    provider.force(path);
  }
  const before = asked('/me');
  await eventually('the provider answers again', () => asked('/me') >= before + 2);
  assert.ok(await isSignedIn());
  provider.people.delete(ADA);
  await eventually('the session has ended', async () => !(await isSignedIn()));
});

test('a person counts as removed when the provider refuses data about the person to a token that it has just issued', async (t) => {
  const fixture = await start(t);
  const { provider } = fixture;
  provider.register(fixture.server.baseUrl, { claimsInIdToken: false });
  provider.people.set(ADA, { groups: ['readers'] });
  const cookie = await signIn(fixture, ADA);
  for (const challenge of [{}, { 'www-authenticate': 'Bearer error="invalid_token"' }]) {
    const again = await signIn(fixture, ADA);
    provider.force('/me', { status: 401, headers: challenge });
    for (const session of [cookie, again])
      await eventually(
        'the session has ended',
        async () => (await visit(fixture, '/api/v3/me', session)).status === 401,
      );
    provider.force('/me');
  }
});

test('an owner by a group does not administer the whole server', async () => {
  const { server, provider } = shared;
  provider.people.set('gil@example.com', { groups: ['admins'] });
  const cookie = await signIn(shared, 'gil@example.com');
  const post = (path: string, body: unknown) =>
    fetch(`${server.baseUrl}${path}`, {
      method: 'POST',
      headers: { cookie, ...workspace, origin: server.baseUrl, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  assert.equal((await post('/api/v3/workspaces', { name: 'Mine' })).status, 403);
  assert.equal((await post('/api/v3/access-tokens', { name: 'x', scopes: ['server:manage'] })).status, 403);
  assert.equal((await post('/api/v3/keys/rotate', {})).status, 403);
  assert.equal((await post('/api/v3/members', { userId: 'h@example.com', role: 'viewer' })).status, 201);
});

test('signing out ends the session, and leads to the provider, which ends its own session', async () => {
  const { server, provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const cookie = await signIn(shared, ADA);
  const out = await fetch(`${server.baseUrl}/sign-out`, {
    method: 'POST',
    headers: { cookie, origin: server.baseUrl },
  });
  const { next } = (await out.json()) as { next: string };
  const url = new URL(next);
  assert.equal(url.origin, provider.issuer);
  assert.equal(url.searchParams.get('post_logout_redirect_uri'), `${server.baseUrl}/sign-in`);
  assert.equal((await visit(shared, '/api/v3/me', cookie)).status, 401);
});

test('a rotation of the keyring includes the tokens of people at the provider', async () => {
  const { server, provider } = shared;
  provider.people.set(ADA, { groups: ['readers'] });
  const cookie = await signIn(shared, ADA);
  const before = await server.client.keys.list();
  await server.client.keys.rotate();
  const old = before.items.find(({ active }) => active)!;
  await eventually('the old key seals nothing', async () => {
    await server.client.keys.delete(old.id).catch(() => undefined);
    return !(await server.client.keys.list()).items.some(({ id }) => id === old.id);
  });
  const asked = provider.requests.length;
  await eventually('ada was asked about again', () => provider.requests.length > asked + 2);
  assert.equal((await visit(shared, '/api/v3/me', cookie)).status, 200);
});

test('neither the secret of the client nor tokens of the provider are in the log', async () => {
  const text = JSON.stringify(shared.server.log);
  assert.ok(!text.includes(CLIENT_SECRET));
  assert.doesNotMatch(text, /eyJ[\w-]{20,}/);
});

test('the server does not ask the provider before somebody signs in', async (t) => {
  const fixture = await start(t);
  await fetch(`${fixture.server.baseUrl}/sign-in/options`);
  assert.deepEqual(fixture.provider.requests, []);
});

test('a person who has signed in with the provider confirms a command line, and its token ends when the provider removes the person', {
  skip: withoutBrowser,
}, async (t) => {
  const { server, provider } = shared;
  const vera = 'vera@example.com';
  provider.people.set(vera, { groups: ['data team'] });
  const shell = new Shell(t);
  const env = { XDG_CONFIG_HOME: join(shell.cwd, 'config') };
  const command = shell.start(['login', server.baseUrl], { env });
  await command.until('type this code there:');
  const [, address = ''] = /in a browser: +(\S+)/.exec(command.output) ?? [];
  const [, code = ''] = /code there: +([A-Z]{4}-[A-Z]{4})/.exec(command.output) ?? [];
  const browser = await openBrowser(t);
  const { page } = await browser.openPath(server, address.slice(server.baseUrl.length));
  await page.getByRole('link', { name: 'Sign in with Example Inc.' }).click();
  await page.getByPlaceholder('Enter any login').fill(vera);
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: /sign-in/i }).click();
  await page.getByRole('button', { name: /continue/i }).click();
  await page.getByLabel('Code').fill(code);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText(vera).waitFor();
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('The command line is signed in.').waitFor();
  const { exitCode, out, err } = await command.ended;
  assert.equal(exitCode, 0, err);
  assert.equal(out, `Signed in to ${server.baseUrl} as ${vera}, in the workspace ${OWNER.workspaceId}.\n`);
  const me = await shell.json<OwnAccount>(['whoami'], { env });
  assert.deepEqual([me.user.id, me.token.workspaceId], [vera, OWNER.workspaceId]);
  provider.people.delete(vera);
  await eventually(
    'the token is refused',
    async () => (await shell.troupe(['whoami'], { env })).exitCode !== 0,
  );
  assert.match((await shell.troupe(['whoami'], { env })).err, /does not accept your token/);
});

test('in a browser a person signs in with the identity provider, works, and signs out at the provider as well', {
  skip: withoutBrowser,
}, async (t) => {
  const { server, provider } = shared;
  provider.people.set('uma@example.com', { groups: ['data team'] });
  await server.client.notebooks.create({ title: 'For everybody' });
  const browser = await openBrowser(t);
  const { page } = await browser.openPath(server, '/');
  await page.getByRole('link', { name: 'Sign in with Example Inc.' }).click();
  await page.getByPlaceholder('Enter any login').fill('uma@example.com');
  await page.getByPlaceholder('and password').fill('any');
  await page.getByRole('button', { name: /sign-in/i }).click();
  await page.getByRole('button', { name: /continue/i }).click();
  await page.getByRole('button', { name: 'For everybody' }).waitFor();
  assert.equal(page.url(), `${server.baseUrl}/`);
  await page.getByText('uma@example.com').waitFor();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByRole('button', { name: /yes/i }).click();
  await page.getByLabel('Or with an access token').waitFor();
  assert.equal(page.url().split('?')[0], `${server.baseUrl}/sign-in`);
  await page.goto(`${server.baseUrl}/`);
  await page.getByLabel('Or with an access token').waitFor();
});
