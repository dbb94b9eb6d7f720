/** Signing in with an access token, as a browser does it, request by request. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { HAS_WORKERS, OWNER, startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { baseUrl } = server;
const OWN_PAGE = { origin: baseUrl };

interface SignedIn {
  readonly cookie: string;
  readonly setCookie: string;
}

async function signIn(token = OWNER.token, headers: Record<string, string> = {}): Promise<SignedIn> {
  const response = await post('/sign-in', { authorization: `Bearer ${token}`, ...headers });
  assert.equal(response.status, 204);
  const setCookie = response.headers.get('set-cookie') ?? '';
  return { setCookie, cookie: setCookie.split(';')[0]! };
}

function post(path: string, headers: Record<string, string>, body?: unknown): Promise<Response> {
  return fetch(`${baseUrl}${path}`, {
    method: 'POST',
    redirect: 'manual',
    headers: {
      ...OWN_PAGE,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

function get(path: string, headers: Record<string, string>): Promise<Response> {
  return fetch(`${baseUrl}${path}`, { redirect: 'manual', headers });
}

const workspace = { 'service-workspace-id': OWNER.workspaceId };

async function codeOf(response: Response): Promise<string> {
  const { code }: { code?: string } = Object(await response.json());
  return `${response.status} ${code}`;
}

test('an access token is exchanged for a cookie that scripts cannot read and that is sent to this server only', async () => {
  const { setCookie } = await signIn();
  const [, ...attributes] = setCookie.split('; ');
  assert.deepEqual(attributes, ['Path=/', 'Max-Age=604800', 'HttpOnly', 'SameSite=Lax']);
  assert.match(setCookie, new RegExp(`^troupe-session-${new URL(baseUrl).port}=trs_`));
});

test('behind a proxy with TLS the cookie is Secure, and bound to the host by its prefix', async () => {
  const { cookie, setCookie } = await signIn(OWNER.token, {
    'x-forwarded-proto': 'https',
    origin: baseUrl.replace('http:', 'https:'),
  });
  assert.match(setCookie, /^__Host-troupe-session-\d+=.*; Path=\/;.*; Secure$/);
  assert.equal((await get('/api/v3/me', { cookie, 'x-forwarded-proto': 'https' })).status, 200);
  assert.equal((await get('/api/v3/me', { cookie })).status, 401, 'it is not taken without TLS');
});

test('a browser session uses the API with the rights of its token', async () => {
  const { cookie } = await signIn();
  const me = (await (await get('/api/v3/me', { cookie })).json()) as { user: { id: string } };
  assert.equal(me.user.id, 'owner');
  const made = await post('/api/v3/notebooks', { cookie, ...workspace }, { title: 'By a session' });
  assert.equal(made.status, 201);
  const { id } = (await made.json()) as { id: string };
  assert.equal((await get(`/api/v3/notebooks/${id}`, { cookie, ...workspace })).status, 200);
  assert.equal(await codeOf(await get(`/api/v3/notebooks/${id}`, { cookie })), '400 missing_workspace');

  const viewer = await addMember(server, 'vera', 'viewer');
  const theirs = await signIn(viewer.token);
  const refused = await post('/api/v3/notebooks', { cookie: theirs.cookie, ...workspace }, {});
  assert.equal(await codeOf(refused), '403 role_too_low');
});

test("a change with a session's cookie is refused unless a page of this server sends it", async () => {
  const { cookie } = await signIn();
  const create = (headers: Record<string, string>) =>
    fetch(`${baseUrl}/api/v3/notebooks`, {
      method: 'POST',
      headers: { cookie, ...workspace, 'content-type': 'application/json', ...headers },
      body: '{}',
    });
  const others: Record<string, string>[] = [
    {},
    { origin: 'https://evil.example' },
    { origin: 'http://127.0.0.1:1' },
    { origin: 'null' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site' },
    { origin: baseUrl, 'sec-fetch-site': 'cross-site' },
  ];
  for (const headers of others)
    assert.equal(await codeOf(await create(headers)), '403 cross_origin', JSON.stringify(headers));
  assert.equal((await create({ 'sec-fetch-site': 'same-origin' })).status, 201);
  assert.equal((await create({ origin: baseUrl })).status, 201);
  assert.equal(
    await codeOf(await get('/api/v3/me', { cookie, 'sec-fetch-site': 'same-site' })),
    '403 cross_origin',
    'a page of another port reads nothing either',
  );
  const bearer = await create({ cookie: '', authorization: `Bearer ${OWNER.token}` });
  assert.equal(bearer.status, 201, 'programs with a token are not asked where they come from');
});

test('pages of other origins cannot sign anybody in or out', async () => {
  const authorization = `Bearer ${OWNER.token}`;
  const origin = 'https://evil.example';
  assert.equal(await codeOf(await post('/sign-in', { authorization, origin })), '403 cross_origin');
  const { cookie } = await signIn();
  assert.equal(await codeOf(await post('/sign-out', { cookie, origin })), '403 cross_origin');
  assert.equal((await get('/api/v3/me', { cookie })).status, 200);
});

test('signing out ends the session, its event streams and its cookie', async () => {
  const { cookie } = await signIn();
  const stream = await get('/api/v3/server/events', { cookie });
  assert.equal(stream.status, 200);
  const ended = stream.text();
  const out = await post('/sign-out', { cookie });
  assert.equal(out.status, 200);
  assert.deepEqual(await out.json(), { next: null });
  assert.match(out.headers.get('set-cookie') ?? '', /^troupe-session-\d+=; .*Max-Age=0/);
  await ended;
  assert.equal(await codeOf(await get('/api/v3/me', { cookie })), '401 unauthenticated');
  assert.equal(await codeOf(await post('/sign-out', { cookie })), '401 unauthenticated');
});

test('signing out everywhere ends all sessions of the user in every worker, with one entry in the audit', async () => {
  const una = await addMember(server, 'una', 'editor');
  const others = await signIn();
  const bound = await signIn(una.token);
  const all = await Promise.all(Array.from({ length: 20 }, () => signIn(una.token)));
  const known = await Promise.all(all.map(({ cookie }) => get('/api/v3/me', { cookie })));
  assert.deepEqual([...new Set(known.map(({ status }) => status))], [200]);
  const out = await post('/sign-out/everywhere', { cookie: bound.cookie });
  assert.deepEqual([out.status, await out.json()], [200, { next: null }]);
  assert.match(out.headers.get('set-cookie') ?? '', /^troupe-session-\d+=; .*Max-Age=0/);
  for (const { cookie } of [bound, ...all]) {
    // Each request may reach another worker.
    const statuses = await Promise.all(Array.from({ length: 6 }, () => get('/api/v3/me', { cookie })));
    assert.deepEqual([...new Set(statuses.map(({ status }) => status))], [401]);
  }
  assert.equal((await get('/api/v3/me', { cookie: others.cookie })).status, 200, 'others stay signed in');
  assert.equal((await server.clientOf(una).me()).user.id, 'una', 'access tokens stay');
  const entries = async () =>
    (await server.client.audit({ limit: 100 })).items.filter(
      ({ action }) => action === 'sign-out-everywhere',
    );
  await eventually('the audit has an entry', async () => (await entries()).length > 0);
  const found = await entries();
  assert.deepEqual([found.length, found[0]?.userId], [1, 'una']);
});

test('signing out everywhere from a session that is bound to a workspace ends only the sessions bound to that workspace', async () => {
  const wanda = await addMember(server, 'wanda', 'editor'); // the token of another member is bound to the workspace
  const second = await server.client.workspaces.create({ name: 'Of another kind' });
  const elsewhere = server.clientOf({ token: OWNER.token, workspaceId: second.id });
  await elsewhere.members.create({ userId: 'wanda', role: 'editor' });
  const scopes = ['workspaceRuntime:connect'] as const;
  const { token } = await elsewhere.accessTokens.create({ name: 'second', userId: 'wanda', scopes });
  const [here, there] = [await signIn(wanda.token), await signIn(token)];
  const out = await signIn(wanda.token);
  assert.equal((await post('/sign-out/everywhere', { cookie: out.cookie })).status, 200);
  assert.equal((await get('/api/v3/me', { cookie: here.cookie })).status, 401);
  assert.equal((await get('/api/v3/me', { cookie: there.cookie })).status, 200);
});

test('an access token cannot sign out everywhere, nor can a page of another origin', async () => {
  const authorization = `Bearer ${OWNER.token}`;
  assert.equal(await codeOf(await post('/sign-out/everywhere', { authorization })), '400 invalid_request');
  const { cookie } = await signIn();
  const origin = 'https://evil.example';
  assert.equal(await codeOf(await post('/sign-out/everywhere', { cookie, origin })), '403 cross_origin');
  assert.equal((await get('/api/v3/me', { cookie })).status, 200);
});

test('revoking the token of a session ends the session and its streams at once', async () => {
  const ada = await addMember(server, 'ada', 'editor');
  const { cookie } = await signIn(ada.token);
  const { id } = await server.client.notebooks.create({});
  assert.equal((await get(`/api/v3/notebooks/${id}`, { cookie, ...workspace })).status, 200);
  const { token } = await server.clientOf(ada).me();
  await server.client.accessTokens.delete(token.id);
  assert.equal(
    await codeOf(await get(`/api/v3/notebooks/${id}`, { cookie, ...workspace })),
    '401 unauthenticated',
  );
});

test('a browser session cannot be exchanged for another session, and is not accepted as an access token', async () => {
  const { cookie } = await signIn();
  assert.equal(await codeOf(await post('/sign-in', { cookie })), '401 unauthenticated');
  const [, secret = ''] = cookie.split('=');
  assert.equal(
    await codeOf(await get('/api/v3/me', { authorization: `Bearer ${secret}` })),
    '401 unauthenticated',
  );
  const asCookie = cookie.replace(secret, OWNER.token);
  assert.equal(await codeOf(await get('/api/v3/me', { cookie: asCookie })), '401 unauthenticated');
});

test('a token in the header takes precedence over the cookie', async () => {
  const { cookie } = await signIn();
  const wrong = await get('/api/v3/me', { cookie, authorization: 'Bearer of-somebody-else-1' });
  assert.equal(await codeOf(wrong), '401 unauthenticated');
  const right = await get('/api/v3/me', { cookie: `${cookie}x`, authorization: `Bearer ${OWNER.token}` });
  assert.equal(right.status, 200);
});

test('the Model Context Protocol accepts no session, because its tools work with the token of the request', async () => {
  const { cookie } = await signIn();
  const message = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const refused = await post(
    '/mcp',
    { cookie, ...workspace, accept: 'application/json, text/event-stream' },
    message,
  );
  assert.equal(await codeOf(refused), '401 unauthenticated');
});

test('a new token that is returned again for its idempotency key is sealed with the session', async () => {
  const { cookie } = await signIn();
  const body = { name: 'made by a session', scopes: ['workspaceRuntime:connect'] };
  const create = (of: string) =>
    post('/api/v3/access-tokens', { cookie: of, ...workspace, 'idempotency-key': 'sealed-1' }, body);
  const first = (await (await create(cookie)).json()) as { token: string };
  assert.deepEqual(await (await create(cookie)).json(), first);
  const other = await create((await signIn()).cookie);
  assert.notEqual(other.status, 201, 'another session of the same user does not get the token');
});

test("signing in and out are recorded in the audit of the user's workspaces", async () => {
  const { cookie } = await signIn();
  const { token } = (await (await get('/api/v3/me', { cookie })).json()) as { token: { id: string } };
  await post('/sign-out', { cookie });
  const { items } = await server.client.audit({ order: 'desc', target: token.id });
  assert.deepEqual(
    items.map(({ action, userId }) => [action, userId]),
    [
      ['sign-out', 'owner'],
      ['sign-in', 'owner'],
    ],
  );
});

test('a restarted server still accepts its browser sessions', async (t) => {
  const first = await startServer(t);
  const response = await fetch(`${first.baseUrl}/sign-in`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OWNER.token}` },
  });
  const [, secret] = /=([^;]+)/.exec(response.headers.get('set-cookie') ?? '') ?? [];
  const again = await first.restart();
  const cookie = `troupe-session-${new URL(again.baseUrl).port}=${secret}`;
  assert.equal((await fetch(`${again.baseUrl}/api/v3/me`, { headers: { cookie } })).status, 200);
});

test('wrong tokens at the sign-in page are throttled, and a right token is accepted at once', async (t) => {
  const own = await startServer(t);
  const attempt = (token: string) =>
    fetch(`${own.baseUrl}/sign-in`, { method: 'POST', headers: { authorization: `Bearer ${token}` } });
  let last = 0;
  for (let i = 0; i < 60; i++) last = (await attempt(`wrong-token-number-${i}`)).status;
  assert.equal(last, 429);
  assert.equal((await attempt(OWNER.token)).status, 204);
});

test('the address of the server shows notebooks to a signed-in person, and leads other browsers to sign in', async () => {
  const html = { accept: 'text/html,application/xhtml+xml' };
  const led = await get('/', html);
  assert.deepEqual([led.status, led.headers.get('location')], [303, 'sign-in']);
  const { cookie } = await signIn();
  const home = await get('/', { ...html, cookie });
  assert.equal(home.status, 200);
  assert.match(await home.text(), /<div id="home">/);
  const policy = home.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self'/);
  assert.doesNotMatch(policy, /unsafe/);
  await post('/sign-out', { cookie });
  assert.equal((await get('/', { ...html, cookie })).status, 303);
  assert.equal((await get('/sign-in', html)).status, 200);
});

test('an unused browser session ends, and the stream that it follows ends as well', {
  skip: HAS_WORKERS,
}, async (t) => {
  const own = await startServer(t, { TROUPE_SIGN_IN_IDLE_S: '5' });
  const response = await fetch(`${own.baseUrl}/sign-in`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OWNER.token}` },
  });
  const [cookie = ''] = (response.headers.get('set-cookie') ?? '').split(';');
  const stream = await fetch(`${own.baseUrl}/api/v3/server/events`, { headers: { cookie } });
  assert.equal(stream.status, 200);
  await stream.text();
  await eventually('the session has ended', async () => {
    const { status } = await fetch(`${own.baseUrl}/`, {
      headers: { cookie, accept: 'text/html' },
      redirect: 'manual',
    });
    return status === 303;
  });
});
