import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { type RawAnswer, type RawRequest, sendBytes } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const notebook = await openNotebook(server, { a: 'x = 1' });
const run = await notebook.run(['a']);

/** Status and code. */
function briefly({ status, body }: RawAnswer): string {
  return `${status} ${(body as { code?: string }).code ?? ''}`.trim();
}

async function answer(method: string, path: string, request?: RawRequest): Promise<string> {
  return briefly(await server.request(method, path, request));
}

const POSTS = [
  '/api/v3/notebooks',
  '/api/v3/execution-environments',
  '/api/v3/notebook-sessions',
  `/api/v3/notebook-sessions/${notebook.id}/executions`,
];

test('a body that is not JSON is refused by every POST', async () => {
  const bodies: (string | Uint8Array)[] = [
    '',
    ' ',
    '{',
    '{"a":1,}',
    "{'a':1}",
    'NaN',
    '{}{}',
    Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from('\ufeff{}', 'utf16le'),
    `${'['.repeat(100_000)}`,
    `${'['.repeat(1000)}${']'.repeat(1000)}`,
  ];
  for (const path of POSTS) {
    for (const body of bodies) {
      // An environment needs no body.
      if (body === '' && path === '/api/v3/execution-environments') continue;
      assert.equal(
        await answer('POST', path, { body }),
        '400 malformed_json',
        `${path} ${String(body).slice(0, 20)}`,
      );
    }
  }
});

test('JSON that does not match the schema is refused by every POST', async () => {
  const bodies = [
    'null',
    '[]',
    '"text"',
    '7',
    'true',
    '{"unknown":1}',
    '{"__proto__":{"a":1}}',
    '{"a":"\\ud800"}',
  ];
  for (const path of POSTS) {
    for (const body of bodies)
      assert.equal(await answer('POST', path, { body }), '400 invalid_request', `${path} ${body}`);
  }
});

test('a body with another media type, or without a media type, is refused', async () => {
  for (const type of [
    undefined,
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/jsonx',
  ]) {
    const refused = await answer('POST', '/api/v3/notebooks', {
      body: '{}',
      headers: { 'content-type': type },
    });
    assert.equal(refused, '415 unsupported_media_type', type);
  }
  for (const type of [
    'application/json',
    'Application/JSON; charset=UTF-8',
    'application/json;charset="utf-8"',
  ]) {
    assert.equal(
      await answer('POST', '/api/v3/notebooks', { body: '{}', headers: { 'content-type': type } }),
      '201',
    );
  }
});

test('a body beyond the limit is refused before it is read, and a body below the limit is accepted', async () => {
  const notebookOf = (bytes: number) =>
    JSON.stringify({ serialization: { cells: [{ cell_id: 'a', code: 'x'.repeat(bytes) }] } });
  const limit = 16 * 1024 * 1024;
  assert.equal(await answer('POST', '/api/v3/notebooks', { body: notebookOf(limit - 100) }), '201');
  assert.equal(await answer('POST', '/api/v3/notebooks', { body: notebookOf(limit) }), '413 body_too_large');
  const small = { body: JSON.stringify({ name: 'x'.repeat(1024 * 1024) }) };
  assert.equal(await answer('POST', '/api/v3/execution-environments', small), '413 body_too_large');
  const announced = await sendBytes(
    server.baseUrl,
    `POST /api/v3/notebooks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${server.owner.token}\r\n` +
      `Service-Workspace-Id: ${server.owner.workspaceId}\r\nContent-Type: application/json\r\nContent-Length: 999999999999\r\n\r\n`,
  );
  assert.match(announced, /^HTTP\/1\.1 413 /);
});

test('without a token, a known token, a workspace or a membership, a response reveals nothing', async () => {
  const path = `/api/v3/notebooks/${notebook.id}`;
  const cases: [Record<string, string | undefined>, string][] = [
    [{ authorization: undefined }, '401 unauthenticated'],
    [{ authorization: '' }, '401 unauthenticated'],
    [{ authorization: 'Bearer' }, '401 unauthenticated'],
    [{ authorization: 'Bearer wrong-token-of-the-owner' }, '401 unauthenticated'],
    [{ authorization: `Basic ${server.owner.token}` }, '401 unauthenticated'],
    [{ authorization: server.owner.token }, '401 unauthenticated'],
    [{ 'service-workspace-id': undefined }, '400 missing_workspace'],
    [{ 'service-workspace-id': 'ws_of_others' }, '404 not_found'],
    [{ 'service-workspace-id': '../..' }, '404 not_found'],
    [{ 'service-workspace-id': 'x'.repeat(3000) }, '404 not_found'],
  ];
  for (const [headers, expected] of cases) {
    const refused = await server.request('GET', path, { headers });
    assert.equal(briefly(refused), expected, JSON.stringify(headers));
    assert.equal(refused.headers['www-authenticate'] !== undefined, refused.status === 401);
  }
});

test('a malformed id gets 404 on every path', async () => {
  const paths = [
    'notebooks/ID',
    'execution-environments/ID',
    'notebook-sessions/ID',
    'notebook-sessions/ID/events',
    'notebook-sessions/ID/executions',
    'runs/ID',
  ];
  const ids = [
    '%00',
    '%2e%2e',
    '%2F',
    '%ff',
    '%zz',
    '%',
    'a%20b',
    '%F0%9F%98%80',
    "'or'1",
    'x'.repeat(1000),
    '__proto__',
    'constructor',
    'null',
    '-1',
    '{}',
  ];
  for (const path of paths) {
    for (const id of ids)
      assert.equal(
        await answer('GET', `/api/v3/${path.replace('ID', id)}`),
        '404 not_found',
        `${path} ${id}`,
      );
  }
});

test('an unknown path is not found, and the refusal of an unknown method lists the allowed methods', async () => {
  for (const path of [
    '/nothing',
    '/api',
    '/api/v3',
    '/api/v3/',
    '/api/v3/notebook',
    '/api/v3/notebooks/',
    '/api/v2/notebooks',
    '//api/v3/notebooks',
  ]) {
    assert.equal(await answer('GET', path), '404 not_found', path);
  }
  const cases: [string, string, string][] = [
    ['DELETE', '/api/v3/notebooks', 'GET, HEAD, OPTIONS, POST'],
    ['PUT', `/api/v3/notebooks/${notebook.id}`, 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    ['POST', `/api/v3/runs/${run.id}`, 'DELETE, GET, HEAD, OPTIONS'],
    ['GET', `/api/v3/runs/${run.id}/cancel`, 'OPTIONS, POST'],
    ['PATCH', `/api/v3/notebook-sessions/${notebook.id}`, 'DELETE, GET, HEAD, OPTIONS'],
    ['DELETE', `/api/v3/notebook-sessions/${notebook.id}/executions`, 'GET, HEAD, OPTIONS, POST'],
  ];
  for (const [method, path, allow] of cases) {
    const refused = await server.request(method, path);
    assert.deepEqual(
      [briefly(refused), refused.headers.allow],
      ['405 method_not_allowed', allow],
      `${method} ${path}`,
    );
  }
});

test('an unknown, repeated or malformed query parameter is refused', async () => {
  const list = `/api/v3/notebook-sessions/${notebook.id}/executions`;
  for (const query of [
    'a=1',
    'limit',
    'limit=1e1',
    'limit=%31%00',
    'limit=99999999999999999999',
    'after=a&after=b',
    '__proto__=1',
    '%ff=1',
  ]) {
    assert.equal(await answer('GET', `${list}?${query}`), '400 invalid_request', query);
  }
  for (const path of [`/api/v3/runs/${run.id}`, `/api/v3/notebooks/${notebook.id}`]) {
    assert.equal(await answer('GET', `${path}?verbose=1`), '400 invalid_request', path);
  }
});

test('a malformed Idempotency-Key is refused', async () => {
  for (const key of ['a b', 'x'.repeat(256), 'ü']) {
    const request = { body: {}, headers: { 'idempotency-key': encodeLatin1(key) } };
    assert.equal(await answer('POST', '/api/v3/notebooks', request), '400 invalid_request', key);
  }
});

test('a valid request id of the caller is returned, and any other is replaced', async () => {
  const idFor = async (given: string) =>
    (await server.request('GET', '/healthz', { headers: { 'x-request-id': given } })).headers['x-request-id'];
  assert.equal(await idFor('my-id.1_2'), 'my-id.1_2');
  for (const bad of ['a b', 'x'.repeat(129), '<script>']) assert.notEqual(await idFor(bad), bad);
  const refused = await server.request('GET', '/api/v3/runs/x', { headers: { 'x-request-id': 'mine' } });
  assert.equal((refused.body as { requestId: string }).requestId, 'mine');
});

test('a problem has all members of RFC 9457 and the members of this API', async () => {
  const { contentType, body, headers } = await server.request('GET', `/api/v3/runs/nothing?x=1`);
  assert.equal(contentType, 'application/problem+json');
  assert.deepEqual(body, {
    type: 'urn:troupe:error:invalid_request',
    title: 'The request does not match the schema',
    status: 400,
    detail: 'query/x is not a known parameter.',
    instance: '/api/v3/runs/nothing',
    code: 'invalid_request',
    requestId: headers['x-request-id'],
    errors: [{ path: 'query/x', message: 'is not a known parameter' }],
  });
});

test('bytes that are not HTTP do no harm', async () => {
  const attempts = [
    '\x16\x03\x01\x02\x00',
    'GET\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/9.9\r\nHost: x\r\n\r\n',
    'POST /api/v3/notebooks HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /api/v3/notebooks HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'POST /api/v3/notebooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    `GET /${'a'.repeat(100_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /nothing HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(100_000)}\r\n\r\n`,
  ];
  for (const bytes of attempts) {
    const text = await sendBytes(server.baseUrl, bytes);
    assert.doesNotMatch(text, /^HTTP\/1\.1 (2|500)/, bytes.slice(0, 40));
  }
  assert.equal(await answer('GET', '/healthz'), '200');
});

test('after all these requests the notebook is unchanged', async () => {
  assert.deepEqual(await server.client.runs.get(run.id), run);
  assert.equal((await notebook.record()).status, 'ready');
  assert.deepEqual(await server.client.notebooks.get(notebook.id), notebook.notebook);
  await notebook.close();
});

/** Header values go out as Latin-1. */
function encodeLatin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

test('a compressed body of JSON or of a file is refused, because the server does not decompress bodies', async () => {
  for (const [method, path, type] of [
    ['POST', '/api/v3/notebooks', 'application/json'],
    ['PUT', '/api/v3/files/a.csv', 'text/csv'],
  ] as const) {
    const put = (encoding: string) =>
      answer(method, path, { body: '{}', headers: { 'content-type': type, 'content-encoding': encoding } });
    assert.equal(await put('gzip'), '415 unsupported_media_type', path);
    assert.equal(await put('identity'), '201', path);
  }
});
