import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import test from 'node:test';
import { filesBelow } from '#test/support/living-files.ts';
import type { RawAnswer } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { CANARY, creatorIn, DATABASE, LISTED, nowhere, problem } from './datasource-requests.ts';

const server = await startServer(test);
const create = creatorIn(server);

/** The metadata without its id, which only the service knows. */
function known(answer: RawAnswer): unknown {
  const { id, createdAt, updatedAt, ...rest } = Object(answer.body);
  assert.match(id, /^ds_/);
  assert.ok(createdAt <= updatedAt);
  return rest;
}

test('a datasource is created with revision 1, and its metadata never contains the connection', async () => {
  const created = await create('first', { name: 'The first' });
  const metadata = {
    slug: 'first',
    kind: 'postgres',
    name: 'The first',
    revision: 1,
    configured: true,
    embedded: false,
    createdBy: 'owner',
  };
  assert.equal(created.status, 201);
  assert.equal(created.headers.location, `${LISTED}/first`);
  assert.deepEqual(known(created), metadata);
  const detail = await server.request('GET', `${LISTED}/first`);
  assert.deepEqual([detail.status, known(detail)], [200, metadata]);
  const listed = await server.request('GET', LISTED);
  assert.deepEqual(Object(listed.body).items, [detail.body]);
});

test('the list contains all datasources unless a page is requested', async (t) => {
  const { client: other } = await startServer(t);
  const slugs = Array.from({ length: 103 }, (_, i) => `s-${String(i).padStart(3, '0')}`);
  await Promise.all(slugs.map((slug) => other.datasources.create({ slug, connection: DATABASE })));
  const all = await other.datasources.list();
  assert.deepEqual([all.items.map(({ slug }) => slug), all.nextCursor], [slugs, null]);
  const page = await other.datasources.list({ limit: 2 });
  assert.deepEqual([page.items.map(({ slug }) => slug), page.nextCursor], [['s-000', 's-001'], 's-001']);
  const rest = await other.datasources.list({ after: 's-100' });
  assert.deepEqual([rest.items.map(({ slug }) => slug), rest.nextCursor], [['s-101', 's-102'], null]);
});

test('an existing slug is refused, and of fifty creations at once exactly one succeeds', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => create('contested')));
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, ...Array<number>(49).fill(409)]);
  assert.deepEqual(problem(await create('contested')), [409, 'already_exists']);
});

for (const [slug, status] of [
  ['a', 201],
  ['9.b_c-D', 201],
  ['x'.repeat(120), 201],
  ['x'.repeat(121), 400],
  ['', 400],
  ['.a', 400],
  ['-a', 400],
  ['_a', 400],
  ['a b', 400],
  ['a/b', 400],
  ['ä', 400],
] as const) {
  test(`the slug ${JSON.stringify(slug.slice(0, 12))} of ${slug.length} characters returns ${status}`, async () => {
    assert.equal((await create(slug)).status, status);
  });
}

test('slugs are case-sensitive', async () => {
  assert.deepEqual([(await create('Case')).status, (await create('case')).status], [201, 201]);
});

for (const [what, connection, path] of [
  ['an unknown kind', { kind: 'abacus' }, '/connection/kind'],
  ['no kind', { schema: 'public' }, '/connection/kind'],
  ['an unknown member', { ...nowhere(), port: 1 }, '/connection/port'],
  ['a missing member', { kind: 'postgres', connection_string: 'postgres://h/d' }, '/connection/schema'],
  ['a member of a wrong type', { ...nowhere(), schema: 7 }, '/connection/schema'],
] as const) {
  test(`a connection with ${what} is refused with the place of the mistake, and the error quotes no value`, async () => {
    const answer = await create('refused', { connection });
    assert.deepEqual(problem(answer), [400, 'invalid_request']);
    const paths = Object(answer.body).errors.map((violation: { path: string }) => violation.path);
    assert.ok(paths.includes(path), JSON.stringify(paths));
    assert.equal(answer.text.includes(CANARY), false);
    assert.equal((await server.request('GET', `${LISTED}/refused`)).status, 404);
  });
}

test('a replacement increments the revision and keeps an omitted name; null clears the name', async () => {
  await create('replaced', { name: 'Kept' });
  const put = (body: object) => server.request('PUT', `${LISTED}/replaced`, { body });
  const kept = await put({ connection: DATABASE });
  const expected = {
    slug: 'replaced',
    kind: 'sqlite',
    revision: 2,
    configured: true,
    embedded: true,
    createdBy: 'owner',
  };
  assert.deepEqual([kept.status, known(kept)], [200, { ...expected, name: 'Kept' }]);
  const cleared = await put({ connection: DATABASE, name: null });
  assert.deepEqual([cleared.status, known(cleared)], [200, { ...expected, name: null, revision: 3 }]);
});

test('a replacement accepts no slug, and needs a complete connection and an existing datasource', async () => {
  await create('strict');
  const put = (slug: string, body: object) => server.request('PUT', `${LISTED}/${slug}`, { body });
  assert.deepEqual(problem(await put('strict', { slug: 'strict', connection: DATABASE })), [
    400,
    'invalid_request',
  ]);
  assert.deepEqual(problem(await put('strict', {})), [400, 'invalid_request']);
  assert.deepEqual(problem(await put('absent', { connection: DATABASE })), [404, 'not_found']);
});

test('a failed test on create or replace returns 400 with the result, and saves nothing', async () => {
  const failed = await create('untested', { testConnection: true });
  const { elapsedMs, ...rest } = Object(failed.body);
  assert.deepEqual(
    [failed.status, rest],
    [400, { ok: false, message: 'The server refused the connection.' }],
  );
  assert.equal(typeof elapsedMs, 'number');
  assert.equal((await server.request('GET', `${LISTED}/untested`)).status, 404);
  await create('tested');
  const put = { connection: nowhere('other'), testConnection: true };
  assert.equal((await server.request('PUT', `${LISTED}/tested`, { body: put })).status, 400);
  assert.equal(Object((await server.request('GET', `${LISTED}/tested`)).body).revision, 1);
});

test('the test of a datasource fails with a conflict when the datasource is replaced meanwhile', async () => {
  const waiting: (() => void)[] = [];
  const silent = createServer(() =>
    waiting.splice(0).forEach((go) => {
      go();
    }),
  );
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = silent.address() as { port: number };
  const slow = { ...nowhere(), connection_string: `postgres://u:p@127.0.0.1:${port}/db` };
  await create('raced', { connection: slow });
  const connected = new Promise<void>((resolve) => waiting.push(resolve));
  const tested = server.request('POST', `${LISTED}/raced/test`);
  await connected;
  assert.equal(
    (await server.request('PUT', `${LISTED}/raced`, { body: { connection: DATABASE } })).status,
    200,
  );
  silent.close();
  assert.deepEqual(problem(await tested), [409, 'datasource_changed']);
});

test('fifty simultaneous replacements all succeed, each with its own revision', async () => {
  await create('busy');
  const answers = await Promise.all(
    Array.from({ length: 50 }, () =>
      server.request('PUT', `${LISTED}/busy`, { body: { connection: DATABASE } }),
    ),
  );
  const done = answers.filter(({ status }) => status === 200).map(({ body }) => Object(body).revision);
  assert.equal(new Set(done).size, done.length);
  assert.ok(answers.every(({ status }) => status === 200 || status === 409));
  const { body } = await server.request('GET', `${LISTED}/busy`);
  assert.equal(Object(body).revision, done.length + 1);
});

test('deleting a datasource returns its slug; a new datasource with this slug starts at revision 1 without grants', async () => {
  await create('brief');
  await server.request('PUT', `${LISTED}/brief`, { body: { connection: DATABASE } });
  await server.request('POST', `${LISTED}/brief/grants`, { body: { subject: 'role:viewer' } });
  const deleted = await server.request('DELETE', `${LISTED}/brief`);
  assert.deepEqual([deleted.status, deleted.body], [200, { slug: 'brief', deleted: true }]);
  assert.deepEqual(problem(await server.request('DELETE', `${LISTED}/brief`)), [404, 'not_found']);
  assert.equal(Object((await create('brief')).body).revision, 1);
  assert.deepEqual((await server.request('GET', `${LISTED}/brief/grants`)).body, { items: [] });
});

test('testing an unsaved connection creates nothing and returns the result', async () => {
  const before = (await server.request('GET', LISTED)).text;
  const answer = await server.request('POST', '/api/v3/datasource-connections/test', {
    body: { connection: nowhere() },
  });
  assert.deepEqual([answer.status, Object(answer.body).ok], [400, false]);
  assert.equal((await server.request('GET', LISTED)).text, before);
});

test('the connection schema is one document for all kinds', async () => {
  const { status, body } = await server.request('GET', '/api/v3/datasource-connections/schema');
  assert.equal(status, 200);
  assert.equal(Object(body).$schema, 'https://json-schema.org/draft/2020-12/schema');
  const kinds = Object(body).oneOf.map(
    (one: { properties: { kind: { const: string } } }) => one.properties.kind.const,
  );
  for (const kind of ['postgres', 'mysql', 'mariadb', 'duckdb', 'sqlite', 'files', 'clickhouse', 'trino']) {
    assert.ok(kinds.includes(kind), kind);
  }
});

for (const [method, path] of [
  ['POST', '/api/cee/datasources/test'],
  ['POST', '/api/cee/workspace/datasource/add'],
  ['GET', '/api/cee/workspace/datasource?slug=x'],
  ['GET', '/api/cee/workspace/datasource/check?slug=x'],
  ['POST', '/api/cee/workspace/datasource/remove'],
] as const) {
  test(`the removed route ${method} ${path} returns 404`, async () => {
    const answer = await server.request(method, path, method === 'POST' ? { body: {} } : {});
    assert.deepEqual(problem(answer), [404, 'not_found']);
  });
}

test('the keyring is rotated while the server runs, and every datasource opens afterwards', async () => {
  await create('rotated', { connection: DATABASE });
  const before = Object((await server.request('GET', '/api/v3/keys')).body).items;
  const after = Object((await server.request('POST', '/api/v3/keys/rotate')).body).items;
  const [old, active] = after;
  assert.deepEqual([after.length, old.id, old.sealed, old.active], [2, before[0].id, 0, false]);
  assert.deepEqual([active.sealed, active.active], [before[0].sealed, true]);
  assert.equal((await server.request('DELETE', `/api/v3/keys/${active.id}`)).status, 409);
  assert.equal((await server.request('DELETE', `/api/v3/keys/${old.id}`)).status, 204);
  assert.deepEqual(Object((await server.request('GET', '/api/v3/keys')).body).items, [active]);
  const probe = await server.request('POST', `${LISTED}/rotated/test`);
  assert.equal(Object(probe.body).message, 'There is no such file or folder in the workspace.');
});

test('no response, log line or file of the data directory contains a password', async () => {
  const answers = [
    await create('canary'),
    await create('canary-tested', { testConnection: true }),
    await server.request('POST', `${LISTED}/canary/test`),
    await server.request('PUT', `${LISTED}/canary`, {
      body: { connection: nowhere(), testConnection: true },
    }),
    await server.request('PUT', `${LISTED}/canary`, { body: { connection: nowhere() } }),
    await server.request('POST', '/api/v3/datasource-connections/test', { body: { connection: nowhere() } }),
    await server.request('GET', '/api/v3/audit?limit=100'),
  ];
  for (const { text } of answers) assert.equal(text.includes(CANARY), false);
  assert.equal(JSON.stringify(server.log).includes(CANARY), false);
  const files = filesBelow(server.dataDir);
  assert.ok(files.size > 0);
  for (const [path, bytes] of files) assert.equal(bytes.includes(CANARY), false, path);
});
