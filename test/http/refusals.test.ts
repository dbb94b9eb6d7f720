import assert from 'node:assert/strict';
import test from 'node:test';
import { GOOD, JSON_BODY, send, serve } from './test-server.ts';
import { thingRoutes, violationsOf } from './thing-routes.ts';

test('cheap checks come first: a refusal from the head of a request precedes a refusal from its body', async (t) => {
  const phase = { isDraining: true };
  const server = await serve(t, thingRoutes, { phase });
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
  phase.isDraining = false;
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

test('a problem document has the error, the path and the request id', async (t) => {
  const server = await serve(t, thingRoutes);
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

test('an unknown path returns 404, and a known path with another method 405 with Allow', async (t) => {
  const server = await serve(t, thingRoutes);
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

test('OPTIONS names the methods, and HEAD returns the head of a GET without the body', async (t) => {
  const server = await serve(t, thingRoutes);
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

test('401 names the authentication scheme, and 503 the time for a retry', async (t) => {
  const phase = { isDraining: false };
  const server = await serve(t, thingRoutes, { phase });
  const anonymous = await send(server, '/things/1', { headers: {} });
  assert.deepEqual([anonymous.status, anonymous.headers['www-authenticate']], [401, 'Bearer realm="troupe"']);
  phase.isDraining = true;
  const late = await send(server, '/things/1', { headers: { ...GOOD, connection: 'keep-alive' } });
  const health = await send(server, '/healthz', { headers: {} });
  assert.deepEqual([late.status, late.headers['retry-after'], late.headers.connection], [503, '5', 'close']);
  assert.deepEqual([health.status, health.json], [200, { status: 'ok' }]);
});

test('a caller without the right gets 403', async (t) => {
  const server = await serve(t, thingRoutes);
  assert.equal((await send(server, '/forbidden')).code, 'role_too_low');
});

test('a text that cannot be an id returns 404 and reaches no handler', async (t) => {
  const server = await serve(t, thingRoutes);
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
  const server = await serve(t, thingRoutes);
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

test('only a page of this server may make a guarded change', async (t) => {
  const server = await serve(t, thingRoutes);
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
  const host = 'troupe.example';
  assert.equal(await attempt({ origin: `http://${host}`, host }), 201);
  assert.equal(await attempt({ origin: `https://${host}`, host }), 'cross_origin');
  assert.equal(await attempt({ origin: `https://${host}`, host, 'x-forwarded-proto': 'https' }), 201);
  assert.equal(
    await attempt({ origin: `http://${host}`, host, 'x-forwarded-proto': 'https' }),
    'cross_origin',
  );
  assert.equal(await attempt({ 'sec-fetch-site': 'same-origin' }), 201);
  assert.equal(await attempt({ 'sec-fetch-site': 'same-origin', origin: 'https://troupe.example' }), 201);
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
    { 'sec-fetch-site': 'none', origin: 'https://evil.example' },
  ];
  for (const headers of refused)
    assert.equal(await attempt(headers), 'cross_origin', JSON.stringify(headers));
});

test('a page of the public address may make a guarded change with every host header of the proxy', async (t) => {
  const server = await serve(t, thingRoutes, { publicUrl: 'https://troupe.example/below' });
  const attempt = async (origin: string) => {
    const headers = { ...JSON_BODY, origin, host: 'upstream' };
    const answer = await send(server, '/things', { method: 'POST', headers, body: '{"name":"n"}' });
    return answer.code ?? answer.status;
  };
  assert.equal(await attempt('https://troupe.example'), 201);
  assert.equal(await attempt('https://TROUPE.example'), 201);
  for (const origin of [
    'http://troupe.example',
    'https://troupe.example:8443',
    'https://evil.example',
    'null',
    'https://troupe.example.evil.example',
  ]) {
    assert.equal(await attempt(origin), 'cross_origin', origin);
  }
});
