import assert from 'node:assert/strict';
import test from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { accepted, created, encodedJson, json, noContent, ok, raw } from '#src/http/reply/reply.ts';
import { prepareHeaders } from '#src/http/reply/write-reply.ts';
import { deferred } from '#test/support/deferred.ts';
import { NO_STORE } from './http-defaults.ts';
import { GOOD, send, serve } from './test-server.ts';
import { thingRoute } from './thing-routes.ts';

test('every kind of reply arrives unchanged', async (t) => {
  const server = await serve(t, [
    thingRoute(() => ok({ a: 'ä' }), 'GET', '/ok'),
    thingRoute(() => created({ id: 1 }, '/things/1'), 'POST', '/created'),
    thingRoute(() => accepted({ id: 1 }, '/runs/1'), 'POST', '/accepted'),
    thingRoute(() => noContent(), 'DELETE', '/none'),
    thingRoute(() => json(400, { ok: false }), 'GET', '/failed'),
    thingRoute(() => encodedJson(Buffer.from('{"stored":1}')), 'GET', '/stored'),
    thingRoute(
      () => raw('text/x-python', 'print(1)', { 'content-disposition': 'attachment' }),
      'GET',
      '/file',
    ),
    thingRoute(async () => ok({ late: true }), 'GET', '/late'),
  ]);
  const shown = async (path: string, method = 'GET') => {
    const { status, headers, text } = await send(server, path, { method });
    return [status, headers['content-type'], headers.location, text];
  };
  assert.deepEqual(await shown('/ok'), [200, 'application/json', undefined, '{"a":"ä"}']);
  assert.deepEqual(await shown('/created', 'POST'), [201, 'application/json', '/things/1', '{"id":1}']);
  assert.deepEqual(await shown('/accepted', 'POST'), [202, 'application/json', '/runs/1', '{"id":1}']);
  assert.deepEqual(await shown('/none', 'DELETE'), [204, undefined, undefined, '']);
  assert.deepEqual(await shown('/failed'), [400, 'application/json', undefined, '{"ok":false}']);
  assert.deepEqual(await shown('/stored'), [200, 'application/json', undefined, '{"stored":1}']);
  assert.deepEqual(await shown('/file'), [200, 'text/x-python', undefined, 'print(1)']);
  assert.deepEqual(await shown('/late'), [200, 'application/json', undefined, '{"late":true}']);
});

test('every answer has a request id: a valid id of the client, or otherwise a new id', async (t) => {
  const server = await serve(t, [thingRoute(() => ok({}))]);
  const idOf = async (sent: string | undefined, path = '/thing') => {
    const { headers } = await send(server, path, {
      headers: { ...GOOD, ...(sent === undefined ? {} : { 'x-request-id': sent }) },
    });
    return headers['x-request-id'];
  };
  assert.deepEqual(await Promise.all(['a.B-9_', 'x'.repeat(128)].map((id) => idOf(id))), [
    'a.B-9_',
    'x'.repeat(128),
  ]);
  assert.equal(await idOf('mine', '/nothing'), 'mine');
  const made = await Promise.all(
    [undefined, '', 'a b', 'x'.repeat(129), '<script>', undefined].map((id) => idOf(id)),
  );
  assert.ok(made.every((id) => /^req_[0-9a-z]+$/.test(String(id))));
  assert.equal(new Set(made).size, made.length);
});

test('prepared headers arrive like other headers, even for pages of other origins and together with replaced general headers', async (t) => {
  const own = { etag: '"1"', location: '/ä' };
  const cached = { ...own, 'cache-control': 'private, no-cache' };
  const body = Buffer.from('{}');
  const routes = Object.entries({
    '/own': own,
    '/own-prepared': prepareHeaders(own),
    '/cached': cached,
    '/cached-prepared': prepareHeaders(cached),
  }).map(([path, headers]) => thingRoute(() => encodedJson(body, 200, headers), 'GET', path));
  const origin = 'https://app.example';
  for (const corsOrigins of [[], [origin]]) {
    const server = await serve(t, routes, { corsOrigins });
    const headersOf = async (path: string, method: string) => {
      const { status, headers } = await send(server, path, {
        method,
        headers: { ...GOOD, origin, 'x-request-id': 'mine' },
      });
      return { status, ...headers, date: undefined };
    };
    for (const method of ['GET', 'HEAD']) {
      for (const path of ['/own', '/cached']) {
        const prepared = await headersOf(`${path}-prepared`, method);
        assert.deepEqual(prepared, await headersOf(path, method));
        assert.equal(prepared.etag, '"1"');
        assert.equal(prepared['content-type'], 'application/json');
      }
    }
  }
});

test('no answer may be cached, framed, sniffed or read by other origins, unless its route says so', async (t) => {
  const server = await serve(t, [
    thingRoute(() => ok({})),
    thingRoute(
      () => raw('image/png', 'x', { 'cache-control': 'private, max-age=31536000, immutable' }),
      'GET',
      '/asset',
    ),
  ]);
  const general = async (path: string, headers: Record<string, string> = GOOD) => {
    const answer = await send(server, path, { headers });
    const names = [
      'cache-control',
      'content-security-policy',
      'cross-origin-resource-policy',
      'referrer-policy',
      'x-content-type-options',
    ];
    return names.map((name) => answer.headers[name]);
  };
  const rest = ["default-src 'none'; frame-ancestors 'none'", 'same-origin', 'no-referrer', 'nosniff'];
  assert.deepEqual(await general('/thing'), ['no-store', ...rest]);
  assert.deepEqual(await general('/nothing', {}), ['no-store', ...rest]);
  assert.deepEqual(await general('/asset'), ['private, max-age=31536000, immutable', ...rest]);
});

test('no value of a header can add a further header', async (t) => {
  const server = await serve(t, [thingRoute(() => created({}, '/x\r\nset-cookie: a=b'), 'POST')]);
  const { headers } = await send(server, '/thing', { method: 'POST' });
  assert.deepEqual([headers.location, headers['set-cookie']], ['/x%0D%0Aset-cookie:%20a=b', undefined]);
});

test('a bug is a 500 that names the request and nothing else, and is logged with the same id', async (t) => {
  const bug = new Error('password=hunter2');
  const server = await serve(t, [
    thingRoute(() => Promise.reject(bug)),
    thingRoute(
      () => {
        throw bug;
      },
      'GET',
      '/sync',
    ),
    thingRoute(() => ok({ value: 1n }), 'POST', '/unencodable'),
  ]);
  const requests = [
    ['GET', '/thing'],
    ['GET', '/sync'],
    ['POST', '/unencodable'],
  ] as const;
  for (const [method, path] of requests) {
    const answer = await send(server, path, {
      method,
      headers: { ...GOOD, 'x-request-id': `id${path.slice(1)}` },
    });
    assert.deepEqual([answer.status, answer.code], [500, 'internal']);
    assert.doesNotMatch(answer.text, /hunter2|BigInt|stack|\.ts/);
  }
  assert.deepEqual(
    server.logged.map(({ fields }) => fields.requestId),
    ['idthing', 'idsync', 'idunencodable'],
  );
  assert.equal(server.logged[0]?.fields.err, bug);
});

test('an error of the catalogue shows its members and headers', async (t) => {
  const server = await serve(t, [
    thingRoute(() => {
      throw new AppError('structural_error', 'Two cells define x.', {
        members: { cells: ['a', 'b'] },
        headers: { 'x-extra': '1' },
      });
    }, 'POST'),
  ]);
  const {
    status,
    headers,
    json: document,
  } = await send(server, '/thing', { method: 'POST', headers: { ...GOOD, 'x-request-id': 'r' } });
  assert.deepEqual([status, headers['x-extra']], [409, '1']);
  assert.deepEqual(document, {
    cells: ['a', 'b'],
    type: 'urn:troupe:error:structural_error',
    title: 'The notebook has structural errors',
    status: 409,
    detail: 'Two cells define x.',
    instance: '/thing',
    code: 'structural_error',
    requestId: 'r',
  });
});

test('an answer to a mutation waits for its commit, and an answer to a GET does not', async (t) => {
  const flushed = deferred();
  let handled = 0;
  const handle = () => ok({ handled: ++handled });
  const server = await serve(t, [thingRoute(handle, 'PATCH'), thingRoute(handle, 'GET')], {
    durable: () => flushed.promise,
  });
  let answered = false;
  const patch = send(server, '/thing', { method: 'PATCH' }).then((answer) => {
    answered = true;
    return answer;
  });
  while (handled === 0) await send(server, '/nothing');
  const get = await send(server, '/thing');
  assert.deepEqual([answered, get.json], [false, { handled: 2 }]);
  flushed.resolve();
  assert.deepEqual((await patch).json, { handled: 1 });
});

test('an answer to a GET that has read a change waits for its commit', async (t) => {
  const flushed = deferred();
  let handled = 0;
  const server = await serve(t, [thingRoute(() => ok({ handled: ++handled }), 'GET')], {
    store: {
      ...NO_STORE,
      observe: (read, ...of) => ({
        result: read(...of),
        uncommitted: handled === 1 ? flushed.promise : undefined,
      }),
    },
  });
  let answered = false;
  const first = send(server, '/thing').then((answer) => {
    answered = true;
    return answer;
  });
  while (handled === 0) await send(server, '/nothing');
  const second = await send(server, '/thing'); // has read nothing that is uncommitted
  assert.deepEqual([answered, second.json], [false, { handled: 2 }]);
  flushed.resolve();
  assert.deepEqual((await first).json, { handled: 1 });
});

test('a commit that fails is a 500', async (t) => {
  const server = await serve(t, [thingRoute(() => ok({}), 'PUT')], {
    durable: () => Promise.reject(new Error('disk full')),
  });
  assert.equal((await send(server, '/thing', { method: 'PUT' })).code, 'internal');
});
