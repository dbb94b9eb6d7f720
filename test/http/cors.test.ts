import assert from 'node:assert/strict';
import test from 'node:test';
import { defer, ok, raw, stream } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import { GOOD, JSON_BODY, send, serve } from './test-server.ts';

const APP = 'https://app.example';
const base = {
  summary: 's',
  tags: [],
  access: { action: 'thing.use' },
  responses: { 200: { description: 'd' } },
} as const;
const routes: readonly Route[] = [
  defineRoute({
    ...base,
    method: 'GET',
    path: '/things',
    operationId: 'a',
    handle: () => ok({ is: 'small' }),
  }),
  defineRoute({
    ...base,
    method: 'GET',
    path: '/large',
    operationId: 'b',
    handle: () => raw('application/octet-stream', Buffer.alloc(1_000_000)),
  }),
  defineRoute({
    ...base,
    method: 'GET',
    path: '/late',
    operationId: 'c',
    // later than a heartbeat, so that the head comes before the answer
    handle: () => defer(new Promise((resolve) => setTimeout(resolve, 60, {})), () => ({})),
  }),
  defineRoute({
    ...base,
    method: 'GET',
    path: '/events',
    operationId: 'd',
    handle: () =>
      stream((sink) => {
        sink.end();
        return { probe: () => Buffer.alloc(0), writable: () => {}, cutOff: () => {}, close: () => {} };
      }),
  }),
  defineRoute({
    ...base,
    method: 'POST',
    path: '/things',
    operationId: 'e',
    sameOrigin: true,
    handle: () => ok({}),
  }),
];
const PATHS = ['/things', '/large', '/late', '/events', '/nothing', '/things?unknown=1'];

test('without a list of origins, no answer has CORS headers', async (t) => {
  const server = await serve(t, routes, { heartbeatMs: 20 });
  for (const path of PATHS) {
    const { headers } = await send(server, path, { headers: { ...GOOD, origin: APP } });
    assert.equal(headers['access-control-allow-origin'], undefined, path);
    assert.doesNotMatch(String(headers.vary), /origin/, path);
  }
});

test('only pages of a listed origin may read answers, of every kind', async (t) => {
  const server = await serve(t, routes, { corsOrigins: [APP], heartbeatMs: 20 });
  for (const path of PATHS) {
    const { headers } = await send(server, path, { headers: { ...GOOD, origin: APP } });
    assert.equal(headers['access-control-allow-origin'], APP, path);
    assert.match(String(headers.vary), /^(accept-encoding, )?origin$/, path);
    assert.match(String(headers['access-control-expose-headers']), /\blocation\b.*\bretry-after\b/);
    for (const origin of [{}, { origin: 'https://other.example' }, { origin: 'null' }]) {
      const other = await send(server, path, { headers: { ...GOOD, ...origin } });
      assert.equal(other.headers['access-control-allow-origin'], undefined, path);
      assert.match(String(other.headers.vary), /^(accept-encoding, )?origin$/, path);
    }
  }
  const refused = await send(server, '/things', { headers: { origin: APP } });
  assert.deepEqual([refused.status, refused.headers['access-control-allow-origin']], [401, APP]);
});

test('a preflight request of a listed origin gets the allowed methods and headers without a token', async (t) => {
  const server = await serve(t, routes, { corsOrigins: [APP] });
  const ask = (origin: string) =>
    send(server, '/things', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      },
    });
  const { status, headers } = await ask(APP);
  assert.equal(status, 204);
  assert.equal(headers['access-control-allow-origin'], APP);
  assert.equal(headers['access-control-allow-methods'], 'GET, HEAD, OPTIONS, POST');
  assert.equal(headers['access-control-max-age'], '7200');
  const allowed = String(headers['access-control-allow-headers']).split(', ');
  for (const name of [
    'authorization',
    'content-type',
    'service-workspace-id',
    'idempotency-key',
    'last-event-id',
  ]) {
    assert.ok(allowed.includes(name), name);
  }
  const other = await ask('https://other.example');
  assert.deepEqual(
    [
      other.status,
      ...['origin', 'methods', 'headers'].map((name) => other.headers[`access-control-allow-${name}`]),
    ],
    [204, undefined, undefined, undefined],
  );
});

test('operations that only pages of this server may call stay refused for a listed origin', async (t) => {
  const server = await serve(t, routes, { corsOrigins: [APP] });
  const { status, code, headers } = await send(server, '/things', {
    method: 'POST',
    headers: { ...JSON_BODY, origin: APP },
    body: '{}',
  });
  assert.deepEqual([status, code, headers['access-control-allow-origin']], [403, 'cross_origin', APP]);
});
