import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { BOOTSTRAP_TOKEN, START } from '#test/people/auth/identity-fixture.ts';
import { serveIdentity } from '#test/people/auth/identity-server.ts';

interface Call {
  readonly token?: string;
  readonly workspace?: string;
  readonly body?: unknown;
}

/** The identity routes on a real server; `call` gives status, headers and parsed body. */
async function serve(t: TestContext) {
  const { baseUrl, ...fixture } = await serveIdentity(t);
  async function call(method: string, path: string, { token, workspace, body }: Call = {}) {
    const headers: Record<string, string> = {
      authorization: `Bearer ${token ?? BOOTSTRAP_TOKEN}`,
      'service-workspace-id': workspace ?? 'home',
      connection: 'close',
    };
    if (body !== undefined) headers['content-type'] = 'application/json';
    const response = await fetch(`${baseUrl}/api/v3${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      location: response.headers.get('location'),
      body: text === '' ? undefined : JSON.parse(text),
    };
  }
  const codeOf = async (method: string, path: string, options?: Call) => {
    const { status, body } = await call(method, path, options);
    return [status, body.code];
  };
  return { ...fixture, call, codeOf };
}

test('a member added by an owner has a role until removal', async (t) => {
  const { call, codeOf } = await serve(t);
  const added = await call('POST', '/members', {
    body: { userId: 'ada@x.org', role: 'viewer', name: 'Ada' },
  });
  const ada = { userId: 'ada@x.org', role: 'viewer', name: 'Ada', createdAt: START, updatedAt: START };
  assert.deepEqual(added, { status: 201, location: '/api/v3/members/ada%40x.org', body: ada });
  assert.deepEqual(await call('GET', '/members/ada%40x.org'), { status: 200, location: null, body: ada });

  const body = {
    name: 'laptop',
    scopes: ['workspaceRuntime:connect', 'workspace:manage'],
    userId: 'ada@x.org',
  };
  const made = await call('POST', '/access-tokens', { body });
  const { token, ...shown } = made.body;
  assert.deepEqual([made.status, made.location], [201, `/api/v3/access-tokens/${shown.id}`]);
  assert.deepEqual(shown, {
    id: shown.id,
    ...body,
    workspaceId: 'home',
    createdAt: START,
    createdBy: 'owner',
    expiresAt: null,
  });
  assert.deepEqual((await call('GET', '/access-tokens', { token })).body, {
    items: [shown],
    nextCursor: null,
  });
  assert.deepEqual(await codeOf('GET', '/members', { token }), [403, 'role_too_low']);
  assert.deepEqual(await codeOf('POST', '/workspaces', { token, body: { name: 'x' } }), [
    403,
    'role_too_low',
  ]);

  const promoted = await call('PATCH', '/members/ada%40x.org', { body: { role: 'owner' } });
  assert.deepEqual([promoted.status, promoted.body.role], [200, 'owner']);
  assert.equal((await call('GET', '/members', { token })).body.items.length, 2);
  assert.equal((await call('DELETE', '/members/ada%40x.org')).status, 204);
  assert.deepEqual(await codeOf('GET', '/workspaces', { token }), [401, 'unauthenticated']);
  assert.deepEqual(await codeOf('DELETE', '/members/owner'), [409, 'last_owner']);
});

test('members can create and enter a workspace, which is hidden from others', async (t) => {
  const { call, codeOf } = await serve(t);
  const { status, location, body } = await call('POST', '/workspaces', { body: { name: 'Research' } });
  assert.deepEqual(
    { status, location, body },
    {
      status: 201,
      location: `/api/v3/workspaces/${body.id}`,
      body: { id: body.id, name: 'Research', createdAt: START },
    },
  );
  assert.deepEqual((await call('GET', '/workspaces?limit=1')).body, {
    items: [{ id: 'home', name: 'Default', createdAt: START }],
    nextCursor: 'home',
  });
  assert.deepEqual((await call('GET', '/workspaces?after=home')).body, { items: [body], nextCursor: null });
  assert.deepEqual((await call('GET', '/members', { workspace: body.id })).body.items.length, 1);
  assert.deepEqual(await codeOf('GET', '/members', { workspace: 'ws_nowhere' }), [404, 'not_found']);
  assert.deepEqual(await codeOf('GET', '/workspaces/ws_nowhere'), [404, 'not_found']);
});

test('a revoked token is no longer valid, and its list entry is gone', async (t) => {
  const { call, codeOf } = await serve(t);
  const made = await call('POST', '/access-tokens', { body: { name: 'x', scopes: ['workspace:manage'] } });
  const path = `/access-tokens/${made.body.id}`;
  assert.equal((await call('GET', path, { token: made.body.token })).status, 200);
  assert.equal((await call('DELETE', path)).status, 204);
  assert.deepEqual(await codeOf('GET', path, { token: made.body.token }), [401, 'unauthenticated']);
  assert.deepEqual(await codeOf('GET', path), [404, 'not_found']);
  assert.deepEqual(await codeOf('DELETE', path), [404, 'not_found']);
});

const REFUSED: readonly (readonly [string, string, unknown])[] = [
  ['POST', '/workspaces', {}],
  ['POST', '/workspaces', { name: '' }],
  ['POST', '/workspaces', { name: 'x', id: 'mine' }],
  ['POST', '/members', { userId: 'a b', role: 'viewer' }],
  ['POST', '/members', { userId: 'x'.repeat(129), role: 'viewer' }],
  ['POST', '/members', { userId: 'ada', role: 'admin' }],
  ['POST', '/members', { userId: '.', role: 'viewer' }],
  ['POST', '/members', { userId: '..', role: 'viewer' }],
  ['PATCH', '/members/owner', {}],
  ['POST', '/access-tokens', { name: 'x', scopes: [] }],
  ['POST', '/access-tokens', { name: 'x', scopes: ['everything'] }],
  ['POST', '/access-tokens', { name: 'x', scopes: ['workspace:manage', 'workspace:manage'] }],
  ['POST', '/access-tokens', { name: 'x', scopes: ['workspace:manage'], expiresAt: 'tomorrow' }],
  ['POST', '/access-tokens', { name: 'x', scopes: ['workspace:manage'], expiresAt: START }],
];

for (const [method, path, body] of REFUSED) {
  test(`${method} ${path} refuses ${JSON.stringify(body).slice(0, 80)}`, async (t) => {
    const { codeOf } = await serve(t);
    assert.deepEqual(await codeOf(method, path, { body }), [400, 'invalid_request']);
  });
}

test('a refusal names the members that a change may have, or the user for whom no token can be created', async (t) => {
  const { call } = await serve(t);
  const nothing = await call('PATCH', '/members/owner', { body: {} });
  assert.equal(nothing.body.detail, 'The body must have at least one of role, name.');
  const token = { name: 'x', scopes: ['workspace:manage'], userId: 'nobody' };
  const unknown = await call('POST', '/access-tokens', { body: token });
  assert.deepEqual(
    [unknown.status, unknown.body.errors.map((one: { path: string }) => one.path)],
    [404, ['/userId']],
  );
});

for (const list of ['/workspaces', '/members', '/access-tokens']) {
  test(`${list} refuses a cursor that cannot be one of its ids, and a limit beyond 100`, async (t) => {
    const { codeOf } = await serve(t);
    assert.deepEqual(await codeOf('GET', `${list}?after=other/one`), [400, 'invalid_cursor']);
    for (const query of ['limit=0', 'limit=101', 'limit=x', 'after=', 'page=2']) {
      assert.deepEqual(await codeOf('GET', `${list}?${query}`), [400, 'invalid_request'], query);
    }
  });
}
