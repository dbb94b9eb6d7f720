/** Rights to datasources, and the entries of the audit about their use. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type RawAnswer, sendRaw } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { creatorIn, DATABASE, LISTED, nowhere, problem } from './datasource-requests.ts';

const server = await startServer(test);
const { client, owner } = server;
const create = creatorIn(server);

async function memberWith(role: 'editor' | 'viewer', userId: string) {
  await client.members.create({ userId, role });
  const { token } = await client.accessTokens.create({
    name: userId,
    userId,
    scopes: ['workspaceRuntime:connect', 'datasource:read'],
  });
  const caller = { token, workspaceId: owner.workspaceId };
  return (method: string, path: string, body?: unknown) =>
    sendRaw(server.baseUrl, method, path, caller, body === undefined ? {} : { body });
}

test('a datasource belongs to its creator and the owners until it is shared, and its readers may replace and delete it', async () => {
  const editor = await memberWith('editor', 'edgar');
  const viewer = await memberWith('viewer', 'vera');
  await create('shared');
  assert.equal((await editor('GET', `${LISTED}/shared`)).status, 404);
  const missing = await viewer('GET', `${LISTED}/never-was`);
  const hidden = await viewer('GET', `${LISTED}/shared`);
  const same = ({ body }: RawAnswer) => ({ ...Object(body), instance: '', requestId: '' });
  assert.deepEqual([hidden.status, same(hidden)], [missing.status, same(missing)]);
  const grant = await server.request('POST', `${LISTED}/shared/grants`, { body: { subject: 'user:vera' } });
  assert.equal(grant.status, 201);
  assert.equal((await viewer('GET', `${LISTED}/shared`)).status, 200);
  assert.equal((await editor('GET', `${LISTED}/shared`)).status, 404);
  assert.equal((await viewer('PUT', `${LISTED}/shared`, { connection: DATABASE })).status, 200);
  assert.equal((await viewer('POST', LISTED, { slug: 'by-viewer', connection: DATABASE })).status, 403);
  const revoked = await server.request('DELETE', `${LISTED}/shared/grants/user:vera`);
  assert.equal(revoked.status, 204);
  assert.equal((await viewer('GET', `${LISTED}/shared`)).status, 404);
  await server.request('POST', `${LISTED}/shared/grants`, { body: { subject: 'role:viewer' } });
  assert.equal((await editor('DELETE', `${LISTED}/shared`)).status, 200);
});

test('a token needs both scopes to use datasources', async () => {
  const { token } = await client.accessTokens.create({ name: 'half', scopes: ['workspaceRuntime:connect'] });
  const answer = await sendRaw(server.baseUrl, 'GET', LISTED, { ...owner, token }, {});
  assert.deepEqual(problem(answer), [403, 'missing_scope']);
});

for (const headers of [
  { origin: 'https://elsewhere.example' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
] as const) {
  test(`a change with ${JSON.stringify(headers)} is refused, and a read is accepted`, async () => {
    const body = { slug: 'foreign', connection: DATABASE };
    assert.deepEqual(problem(await server.request('POST', LISTED, { body, headers })), [403, 'cross_origin']);
    assert.equal((await server.request('GET', LISTED, { headers })).status, 200);
  });
}

test('the audit shows owners each action with its user, time and address', async () => {
  await create('audited');
  await server.request('DELETE', `${LISTED}/audited`);
  const { items } = Object((await server.request('GET', '/api/v3/audit?limit=100')).body);
  const mine = items.filter(({ target }: { target: string }) => target === 'audited');
  const { id: _, createdAt, tokenId, requestId, ...first } = mine[0];
  assert.ok(Date.parse(createdAt) > 0 && tokenId.startsWith('tok_') && requestId !== '');
  assert.deepEqual(first, {
    userId: 'owner',
    action: 'datasource.create',
    target: 'audited',
    outcome: 'done',
    detail: null,
    address: '127.0.0.1',
  });
  assert.deepEqual(
    mine.map(({ action }: { action: string }) => action),
    ['datasource.create', 'datasource.delete'],
  );
  const editor = await memberWith('editor', 'auditor');
  assert.equal((await editor('GET', '/api/v3/audit')).status, 403);
});

test('the audit contains every action with its outcome', async () => {
  const at = `${LISTED}/followed`;
  await create('followed');
  await create('followed', { testConnection: true }); // it already exists, so this test need not create it
  await create('followed-in-vain', { testConnection: true });
  await server.request('PUT', at, { body: { connection: nowhere(), testConnection: true } });
  await server.request('PUT', at, { body: { connection: nowhere() } });
  await server.request('POST', `${at}/test`);
  await server.request('POST', '/api/v3/datasource-connections/test', { body: { connection: nowhere() } });
  await server.request('POST', `${at}/grants`, { body: { subject: 'role:editor' } });
  await server.request('DELETE', `${at}/grants/role:editor`);
  await server.request('DELETE', at);
  const items: Record<string, unknown>[] = [];
  for (let after: string | null = ''; after !== null; ) {
    const { body } = await server.request('GET', `/api/v3/audit?limit=100${after && `&after=${after}`}`);
    items.push(...Object(body).items);
    after = Object(body).nextCursor;
  }
  const mine = items.filter(({ target }) =>
    ['followed', 'followed-in-vain', 'postgres'].includes(String(target)),
  );
  assert.deepEqual(
    mine.slice(-9).map(({ action, outcome, detail }) => [action, outcome, detail].filter(Boolean).join(' ')),
    [
      'datasource.create done',
      'datasource.create failed',
      'datasource.replace failed',
      'datasource.replace done',
      'datasource.test failed',
      'datasource.test-unsaved failed',
      'datasource.share done role:editor',
      'datasource.unshare done role:editor',
      'datasource.delete done',
    ],
  );
});
