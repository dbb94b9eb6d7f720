import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { created, ok } from '#src/http/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { GOOD, JSON_BODY, RawConnection, send, serve } from './test-server.ts';

const docs = { summary: 's', tags: ['Things'], responses: { 200: { description: 'd' } } } as const;
const use = { action: 'thing.use' } as const;

const Thing = Type.Object(
  {
    name: Type.String(),
    parts: Type.Optional(
      Type.Array(
        Type.Union([
          Type.Object(
            { kind: Type.Literal('wheel'), spokes: Type.Integer() },
            { additionalProperties: false },
          ),
          Type.Object({ kind: Type.Literal('bell'), loud: Type.Boolean() }, { additionalProperties: false }),
        ]),
      ),
    ),
    labels: Type.Optional(
      Type.Record(Type.String({ pattern: '^[a-z]+$' }), Type.String(), { additionalProperties: false }),
    ),
    anything: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);

const routes = [
  ...healthRoutes(() => ({ ready: true })),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/things',
    operationId: 'createThing',
    access: use,
    sameOrigin: true,
    bodyLimitBytes: 4096,
    query: Type.Object({ dry: Type.Boolean({ default: false }) }),
    body: Thing,
    handle: ({ body }) => created(body, '/things/1'),
  }),
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/things/:thingId',
    operationId: 'getThing',
    access: use,
    query: Type.Object({
      limit: Type.Integer({ default: 50, minimum: 1, maximum: 100 }),
      after: Type.Optional(Type.String()),
    }),
    handle: ({ params, query }) => ok({ ...params, ...query }),
  }),
  defineRoute({
    ...docs,
    method: 'GET',
    path: '/forbidden',
    operationId: 'f',
    access: { action: 'forbidden' },
    handle: () => ok({}),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/optional',
    operationId: 'optional',
    access: use,
    body: Thing,
    optionalBody: true,
    handle: ({ body }) => ok({ body: body ?? null }),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/bodiless',
    operationId: 'bodiless',
    access: use,
    handle: () => ok({}),
  }),
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/large',
    operationId: 'large',
    access: use,
    bodyLimitBytes: 16 * 1024 * 1024,
    body: Thing,
    handle: () => ok({}),
  }),
];

function violationsOf(json: unknown): unknown {
  return typeof json === 'object' && json !== null && 'errors' in json ? json.errors : undefined;
}

test('each refusal comes before those that need more of the request', async (t) => {
  let draining = true;
  const server = await serve(t, routes, { draining: () => draining });
  const headers: Record<string, string> = {
    origin: 'https://evil.example',
    'idempotency-key': 'ä',
    'content-type': 'text/plain',
  };
  let path = '/things?unknown=1';
  let body = 'x'.repeat(5000);
  const attempt = async () => {
    const { status, code } = await send(server, path, { method: 'POST', headers, body });
    return `${status} ${code}`;
  };
  assert.equal(await attempt(), '503 unavailable');
  draining = false;
  assert.equal(await attempt(), '401 unauthenticated');
  headers.authorization = GOOD.authorization;
  assert.equal(await attempt(), '400 missing_workspace');
  headers['service-workspace-id'] = 'ws_of_others';
  assert.equal(await attempt(), '404 not_found');
  headers['service-workspace-id'] = 'ws_1';
  assert.equal(await attempt(), '403 cross_origin');
  delete headers.origin;
  assert.equal(await attempt(), '400 invalid_request');
  headers['idempotency-key'] = 'fine';
  assert.equal(await attempt(), '400 invalid_request');
  path = '/things?dry=true';
  assert.equal(await attempt(), '415 unsupported_media_type');
  headers['content-type'] = 'application/json';
  assert.equal(await attempt(), '413 body_too_large');
  body = '{"nam';
  assert.equal(await attempt(), '400 malformed_json');
  body = '{"nam":""}';
  assert.equal(await attempt(), '400 invalid_request');
  body = '{"name":"n"}';
  assert.equal(await attempt(), '201 undefined');
});

test('a problem document says what, where and which request', async (t) => {
  const server = await serve(t, routes);
  const { status, headers, json } = await send(server, '/things/a%40b?limit=0&x=1', {
    headers: { ...GOOD, 'x-request-id': 'mine-1' },
  });
  assert.deepEqual(
    [status, headers['content-type'], headers['x-request-id']],
    [400, 'application/problem+json', 'mine-1'],
  );
  assert.deepEqual(json, {
    type: 'urn:troupe:error:invalid_request',
    title: 'The request does not match the schema',
    status: 400,
    detail: 'query/x is not a known parameter.',
    instance: '/things/a@b',
    code: 'invalid_request',
    requestId: 'mine-1',
    errors: [{ path: 'query/x', message: 'is not a known parameter' }],
  });
});

test('an unknown path is 404 and a known one with another method 405 with Allow', async (t) => {
  const server = await serve(t, routes);
  const answers = await Promise.all([
    send(server, '/nothing', { headers: {} }),
    send(server, '/things/1/more', { headers: {} }),
    send(server, '/things', { method: 'PUT', headers: {} }),
    send(server, '/things/1', { method: 'DELETE', headers: {} }),
    send(server, '/things/1', { method: 'PROPFIND', headers: {} }),
  ]);
  assert.deepEqual(
    answers.map(({ code, headers }) => [code, headers.allow]),
    [
      ['not_found', undefined],
      ['not_found', undefined],
      ['method_not_allowed', 'OPTIONS, POST'],
      ['method_not_allowed', 'GET, HEAD, OPTIONS'],
      ['method_not_allowed', 'GET, HEAD, OPTIONS'],
    ],
  );
});

test('OPTIONS names the methods, HEAD answers as GET without the body', async (t) => {
  const server = await serve(t, routes);
  const options = await send(server, '/things/1', { method: 'OPTIONS', headers: {} });
  assert.deepEqual([options.status, options.headers.allow, options.text], [204, 'GET, HEAD, OPTIONS', '']);
  const get = await send(server, '/things/1');
  const head = await send(server, '/things/1', { method: 'HEAD' });
  assert.deepEqual(
    [head.status, head.headers['content-length'], head.text],
    [200, get.headers['content-length'], ''],
  );
  const refused = await send(server, '/things/1', { method: 'HEAD', headers: {} });
  assert.deepEqual([refused.status, refused.text], [401, '']);
});

test('401 says how to authenticate, 503 when to come back', async (t) => {
  let draining = false;
  const server = await serve(t, routes, { draining: () => draining });
  const anonymous = await send(server, '/things/1', { headers: {} });
  assert.deepEqual([anonymous.status, anonymous.headers['www-authenticate']], [401, 'Bearer realm="troupe"']);
  draining = true;
  const late = await send(server, '/things/1', { headers: { ...GOOD, connection: 'keep-alive' } });
  const health = await send(server, '/healthz', { headers: {} });
  assert.deepEqual([late.status, late.headers['retry-after'], late.headers.connection], [503, '5', 'close']);
  assert.deepEqual([health.status, health.json], [200, { status: 'ok' }]);
});

test('a caller without the right is 403', async (t) => {
  const server = await serve(t, routes);
  assert.equal((await send(server, '/forbidden')).code, 'role_too_low');
});

test('what cannot be an id is 404, and reaches no handler', async (t) => {
  const server = await serve(t, routes);
  const paths = [
    '/things/',
    '/things/a%2Fb',
    '/things/%zz',
    '/things/%00',
    '/things/a%20b',
    `/things/${'x'.repeat(201)}`,
    '/things/%C3%A4',
  ];
  const answers = await Promise.all(paths.map((path) => send(server, path)));
  assert.deepEqual(
    answers.map(({ code }) => code),
    paths.map(() => 'not_found'),
  );
  assert.deepEqual((await send(server, '/things/a%40b.c-d_e')).json, { thingId: 'a@b.c-d_e', limit: 50 });
});

test('a query is parsed strictly', async (t) => {
  const server = await serve(t, routes);
  const errors = async (query: string) => {
    const { json } = await send(server, `/things/1?${query}`);
    return violationsOf(json) ?? json;
  };
  assert.deepEqual(await errors('limit=7&after=r_1'), { thingId: '1', limit: 7, after: 'r_1' });
  assert.deepEqual(await errors('limit=7&limit=8'), [{ path: 'query/limit', message: 'is given twice' }]);
  assert.deepEqual(await errors('limit=ten'), [{ path: 'query/limit', message: 'must be integer' }]);
  assert.deepEqual(await errors('limit=1e1'), [{ path: 'query/limit', message: 'must be integer' }]);
  assert.deepEqual(await errors('limit='), [{ path: 'query/limit', message: 'must be integer' }]);
  assert.deepEqual(await errors('limit=101'), [{ path: 'query/limit', message: 'must be <= 100' }]);
  assert.deepEqual(await errors('__proto__=1'), [
    { path: 'query/__proto__', message: 'is not a known parameter' },
  ]);
  assert.equal((await send(server, '/forbidden?a=1', { headers: {} })).status, 401);
});

test('only a page of this server may change what is guarded against other origins', async (t) => {
  const server = await serve(t, routes);
  const own = `${server.host}:${server.port}`;
  const attempt = async (headers: Record<string, string>) => {
    const answer = await send(server, '/things', {
      method: 'POST',
      headers: { ...JSON_BODY, ...headers },
      body: '{"name":"n"}',
    });
    return answer.code ?? answer.status;
  };
  assert.equal(await attempt({}), 201);
  assert.equal(await attempt({ origin: `http://${own}` }), 201);
  assert.equal(await attempt({ origin: 'https://troupe.example', host: 'troupe.example' }), 201);
  assert.equal(await attempt({ 'sec-fetch-site': 'same-origin' }), 201);
  assert.equal(await attempt({ 'sec-fetch-site': 'none' }), 201);
  const refused = [
    { origin: 'null' },
    { origin: 'https://evil.example' },
    { origin: `http://${own}.evil.example` },
    { origin: `http://${own}@evil.example` },
    { origin: `file://${own}` },
    { origin: 'http://' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site', origin: `http://${own}` },
  ];
  for (const headers of refused)
    assert.equal(await attempt(headers), 'cross_origin', JSON.stringify(headers));
});

test('a body has to be JSON in UTF-8, and to say so', async (t) => {
  const server = await serve(t, routes);
  const attempt = async (contentType: string | undefined, body: string | Uint8Array) => {
    const headers = { ...GOOD, ...(contentType === undefined ? {} : { 'content-type': contentType }) };
    const answer = await send(server, '/things', { method: 'POST', headers, body });
    return answer.code ?? answer.status;
  };
  assert.equal(await attempt('application/json; charset=utf-8', '{"name":"ä"}'), 201);
  assert.equal(await attempt('APPLICATION/JSON;charset="UTF-8"', '{"name":"n"}'), 201);
  for (const type of [
    undefined,
    'text/plain',
    'application/json; charset=latin1',
    'application/jsonx',
    'application/x-www-form-urlencoded',
  ]) {
    assert.equal(await attempt(type, '{"name":"n"}'), 'unsupported_media_type', type);
  }
  const malformed = [
    '',
    ' ',
    '{',
    '{"name":"n"}x',
    "{'name':1}",
    'nul',
    '\ufeff{"name":"n"}',
    '{"name":"\n"}',
    '[1,]',
    `{"name":"n","anything":${'9'.repeat(309)}}`,
    Buffer.from([0x22, 0xff, 0x22]),
  ];
  for (const body of malformed)
    assert.equal(await attempt('application/json', body), 'malformed_json', JSON.stringify(body));
});

test('a body that does not match is refused with every mistake and none of its values', async (t) => {
  const server = await serve(t, routes);
  const errors = async (body: unknown) => {
    const answer = await send(server, '/things', {
      method: 'POST',
      headers: JSON_BODY,
      body: JSON.stringify(body),
    });
    assert.equal(answer.code, 'invalid_request');
    assert.doesNotMatch(answer.text, /hunter2/);
    return violationsOf(answer.json);
  };
  assert.deepEqual(await errors({ nam: 'hunter2', 'a/b~c': 1 }), [
    { path: '/name', message: 'is required' },
    { path: '/nam', message: 'is not a known member' },
    { path: '/a~1b~0c', message: 'is not a known member' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: 'wheel', spokes: 'hunter2' }] }), [
    { path: '/parts/0/spokes', message: 'must be integer' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: 'hunter2' }] }), [
    { path: '/parts/0/kind', message: 'must be one of "wheel", "bell"' },
  ]);
  assert.deepEqual(await errors({ name: 'n', parts: [{ kind: null }, 7] }), [
    { path: '/parts/0/kind', message: 'must be one of "wheel", "bell"' },
    { path: '/parts/1', message: 'must be object' },
  ]);
  const mixed = [
    { kind: 'wheel', spokes: 'x' },
    { kind: 'bell', loud: 'x' },
  ];
  assert.deepEqual(await errors({ name: 'n', parts: mixed }), [
    { path: '/parts/0/spokes', message: 'must be integer' },
    { path: '/parts/1/loud', message: 'must be boolean' },
  ]);
  const manyUnions = { name: 'n', parts: Array(10).fill({ kind: 'bell', loud: 'hunter2' }) };
  assert.deepEqual(
    await errors(manyUnions),
    Array.from({ length: 10 }, (_, i) => ({ path: `/parts/${i}/loud`, message: 'must be boolean' })),
  );
  assert.deepEqual(await errors({ name: 'n', labels: { '1a': 'x', b: 'hunter2' } }), [
    { path: '/labels/1a', message: 'is not an allowed name: it must match ^[a-z]+$' },
  ]);
  assert.deepEqual(await errors(['hunter2']), [{ path: '', message: 'must be object' }]);
  assert.deepEqual(await errors('hunter2'), [{ path: '', message: 'must be object' }]);
});

test('members that reach for prototypes, half characters and numbers beyond a double are refused', async (t) => {
  const server = await serve(t, routes);
  const bodies = [
    '{"name":"n","__proto__":{"x":1}}',
    '{"name":"n","constructor":1}',
    '{"name":"n","anything":{"a":[{"__proto__":{"x":1}}]}}',
    '{"name":"n","anything":{"\\u005f_proto__":1}}',
    '{"name":"n","anything":[1e308,1e309]}',
    '{"name":"n","anything":{"deep":{"low":-2E+400}}}',
    '{"name":"\\ud800"}',
    '{"name":"n","anything":{"\\udc00":1}}',
  ];
  for (const body of bodies) {
    assert.equal(
      (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body })).code,
      'invalid_request',
      body,
    );
  }
  const fine = '{"name":"__proto__ \\ud83d\\ude00 \\u0000"}';
  assert.equal(
    (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body: fine })).status,
    201,
  );
});

test('deep nesting is refused however large it is', async (t) => {
  const server = await serve(t, routes);
  const post = async (body: string) =>
    (await send(server, '/large', { method: 'POST', headers: JSON_BODY, body })).code;
  const nest = (depth: number) => `{"name":"n","anything":${'['.repeat(depth)}${']'.repeat(depth)}}`;
  assert.equal(await post(nest(127)), undefined);
  assert.equal(await post(nest(128)), 'malformed_json');
  assert.equal(await post(nest(8_000_000)), 'malformed_json');
  assert.equal(await post('['.repeat(16_000_000)), 'malformed_json');
  assert.equal(await post('{"a":'.repeat(3_000_000)), 'malformed_json');
  assert.equal(await post(`{"name":"${'[{'.repeat(1_000_000)}\\"["}`), undefined);
});

test('very many values are refused before they cost time; fewer are checked, but not explained', async (t) => {
  const server = await serve(t, routes);
  const post = (parts: number) => {
    const body = `{"name":"n","parts":[${Array(parts).fill('{}').join(',')}]}`;
    return send(server, '/large', { method: 'POST', headers: JSON_BODY, body });
  };
  assert.equal((await post(150_000)).code, 'malformed_json');
  const large = await post(100_000);
  const why = { path: '', message: 'does not match the schema, and is too large to say where' };
  assert.deepEqual([large.code, violationsOf(large.json)], ['invalid_request', [why]]);
});

test('20 MB are refused without being kept, announced or not', async (t) => {
  const server = await serve(t, routes);
  const body = Buffer.alloc(20_000_000, '[');
  const announced = await send(server, '/things', { method: 'POST', headers: JSON_BODY, body });
  const chunked = await send(server, '/things', {
    method: 'POST',
    headers: { ...JSON_BODY, 'transfer-encoding': 'chunked' },
    body,
  });
  assert.deepEqual([announced.code, chunked.code], ['body_too_large', 'body_too_large']);
});

test('a client that sends all of a body that is too large before it reads is answered, and served again', async (t) => {
  const server = await serve(t, routes);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  const raw = new RawConnection(server);
  const length = 20_000_000;
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: ${length}\r\n\r\n`);
  raw.write('x'.repeat(length));
  raw.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until((text) => text.includes('HTTP/1.1 200 '));
  assert.match(raw.text, /^HTTP\/1\.1 413 /);
  raw.leave();
});

test('of a body without end only so much is thrown away', async (t) => {
  const server = await serve(t, routes);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  const raw = new RawConnection(server);
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Transfer-Encoding: chunked\r\n\r\n`);
  const chunk = `${(10_000_000).toString(16)}\r\n${'x'.repeat(10_000_000)}\r\n`;
  for (let n = 0; n < 8; n++) raw.write(chunk);
  await raw.closed;
  assert.match(raw.text, /^$|^HTTP\/1\.1 413 .*connection: close/is);
});

test('an announced body that is too large is refused before it is sent', async (t) => {
  const server = await serve(t, routes);
  const raw = new RawConnection(server);
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  raw.write(`POST /things HTTP/1.1\r\nHost: x\r\n${head.join('')}Content-Length: 5000\r\n\r\n`);
  await raw.until((text) => text.includes('body_too_large'));
  assert.match(raw.text, /^HTTP\/1\.1 413 /);
  raw.leave();
});

test('a body exactly at the limit is taken, one byte more is not', async (t) => {
  const server = await serve(t, routes);
  const ofLength = (length: number) => `{"name":"${'n'.repeat(length - 11)}"}`;
  const post = async (body: string) =>
    (await send(server, '/things', { method: 'POST', headers: JSON_BODY, body })).status;
  assert.deepEqual([await post(ofLength(4096)), await post(ofLength(4097))], [201, 413]);
});

test('a body may be left out where it is optional, and is not looked at where there is none', async (t) => {
  const server = await serve(t, routes);
  const without = await send(server, '/optional', { method: 'POST' });
  const withBody = await send(server, '/optional', {
    method: 'POST',
    headers: JSON_BODY,
    body: '{"name":"n"}',
  });
  const wrong = await send(server, '/optional', { method: 'POST', headers: JSON_BODY, body: '{}' });
  const ignored = await send(server, '/bodiless', { method: 'POST', headers: JSON_BODY, body: '{' });
  assert.deepEqual(
    [without.json, withBody.json, wrong.status, ignored.status],
    [{ body: null }, { body: { name: 'n' } }, 400, 200],
  );
});

test('a request whose end is in doubt is refused and its connection ends', async (t) => {
  const server = await serve(t, routes);
  const forms = [
    'Content-Length: 12\r\nContent-Length: 13',
    'Content-Length: 12\r\nContent-Length: 12',
    'Content-Length: +12',
    'Content-Length: -12',
    'Content-Length: 0x0c',
    'Content-Length: 12, 12',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked\r\nContent-Length: 12',
    'Content-Length: 12\r\nTransfer-Encoding: chunked',
    'Transfer-Encoding: xchunked',
    'Transfer-Encoding: identity',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked',
  ];
  const head = Object.entries(JSON_BODY).map(([name, value]) => `${name}: ${value}\r\n`);
  for (const form of forms) {
    for (const path of ['/things', '/bodiless']) {
      const raw = new RawConnection(server);
      raw.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${head.join('')}${form}\r\n\r\n{"name":"n"}`);
      await raw.until((text) => text.startsWith('HTTP/1.1 ') && text.includes('\r\n\r\n'));
      raw.socket.end();
      await raw.closed;
      assert.match(raw.text, /^HTTP\/1\.1 400 /, `${path} ${form}`);
      assert.match(raw.text, /connection: close/i, `${path} ${form}`);
    }
  }
});
