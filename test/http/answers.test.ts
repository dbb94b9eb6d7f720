import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { AppError } from '#src/core/errors.ts';
import {
  accepted,
  created,
  encodedJson,
  json,
  noContent,
  ok,
  type Reply,
  raw,
} from '#src/http/reply/reply.ts';
import { defineRoute, type Method } from '#src/http/route.ts';
import { deferred, GOOD, JSON_BODY, principal, RawConnection, send, serve } from './test-server.ts';

const docs = { summary: 's', tags: ['Things'], responses: { 200: { description: 'd' } } } as const;
const Body = Type.Object({ name: Type.String() }, { additionalProperties: false });

const route = (handle: () => Reply | Promise<Reply>, method: Method = 'GET', path = '/thing') =>
  defineRoute({
    ...docs,
    method,
    path,
    operationId: `${method}${path}`,
    access: { action: 'thing.use' },
    handle,
  });

test('every kind of reply arrives as it was made', async (t) => {
  const server = await serve(t, [
    route(() => ok({ a: 'ä' }), 'GET', '/ok'),
    route(() => created({ id: 1 }, '/things/1'), 'POST', '/created'),
    route(() => accepted({ id: 1 }, '/runs/1'), 'POST', '/accepted'),
    route(() => noContent(), 'DELETE', '/none'),
    route(() => json(400, { ok: false }), 'GET', '/failed'),
    route(() => encodedJson(Buffer.from('{"stored":1}')), 'GET', '/stored'),
    route(() => raw('text/x-python', 'print(1)', { 'content-disposition': 'attachment' }), 'GET', '/file'),
    route(async () => ok({ late: true }), 'GET', '/late'),
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

test('every answer has a request id: the one that was sent if it is sane, else a new one', async (t) => {
  const server = await serve(t, [route(() => ok({}))]);
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

test('no answer may be cached, framed, sniffed or read by other origins, unless its route says so', async (t) => {
  const server = await serve(t, [
    route(() => ok({})),
    route(
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

test('a header cannot be broken out of', async (t) => {
  const server = await serve(t, [route(() => created({}, '/x\r\nset-cookie: a=b'), 'POST')]);
  const { headers } = await send(server, '/thing', { method: 'POST' });
  assert.deepEqual([headers.location, headers['set-cookie']], ['/x%0D%0Aset-cookie:%20a=b', undefined]);
});

test('a bug is a 500 that names the request and nothing else, and is logged with the same id', async (t) => {
  const bug = new Error('password=hunter2');
  const server = await serve(t, [
    route(() => Promise.reject(bug)),
    route(
      () => {
        throw bug;
      },
      'GET',
      '/sync',
    ),
    route(() => ok({ value: 1n }), 'POST', '/unencodable'),
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
    route(() => {
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

test('an answer to a mutation waits for its commit, one to a GET does not', async (t) => {
  const flushed = deferred();
  let handled = 0;
  const handle = () => ok({ handled: ++handled });
  const server = await serve(t, [route(handle, 'PATCH'), route(handle, 'GET')], {
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

test('a commit that fails is a 500', async (t) => {
  const server = await serve(t, [route(() => ok({}), 'PUT')], {
    durable: () => Promise.reject(new Error('disk full')),
  });
  assert.equal((await send(server, '/thing', { method: 'PUT' })).code, 'internal');
});

test('a handler sees a copy of the request, and its caller', async (t) => {
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'POST',
      path: '/things/:thingId/parts/:partId',
      operationId: 'x',
      access: { action: 'thing.use' },
      headers: { 'service-session-id': 'The session.', 'if-match': 'A version.' },
      body: Body,
      async handle(exchange) {
        await Promise.resolve();
        const { params, headers, body, query, requestId } = exchange;
        return ok({
          params,
          headers,
          body,
          query: query ?? null,
          requestId,
          caller: exchange.principal.userId,
        });
      },
    }),
  ]);
  const headers = { ...JSON_BODY, 'service-session-id': 'nb_1', 'x-request-id': 'r', 'x-other': 'unseen' };
  const answer = await send(server, '/things/a/parts/b', { method: 'POST', headers, body: '{"name":"n"}' });
  assert.deepEqual(answer.json, {
    params: { thingId: 'a', partId: 'b' },
    headers: { 'service-session-id': 'nb_1', 'if-match': '' },
    body: { name: 'n' },
    query: {},
    requestId: 'r',
    caller: principal.userId,
  });
});

test('a client that leaves aborts the signal, and the late answer is dropped', async (t) => {
  const entered = deferred();
  const aborted = deferred<boolean>();
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/slow',
      operationId: 'slow',
      access: 'public',
      async handle({ signal }) {
        entered.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        aborted.resolve(signal.aborted);
        return ok({});
      },
    }),
    route(() => ok({})),
  ]);
  const raw = new RawConnection(server);
  raw.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await entered.promise;
  raw.leave();
  assert.equal(await aborted.promise, true);
  assert.equal((await send(server, '/thing')).status, 200);
});

test('a client that leaves within its body reaches no handler', async (t) => {
  let handled = 0;
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'POST',
      path: '/things',
      operationId: 'c',
      access: 'public',
      body: Body,
      handle: () => ok({ handled: ++handled }),
    }),
  ]);
  const raw = new RawConnection(server);
  raw.write(
    'POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n',
  );
  await raw.until((text) => text.includes('100 Continue'));
  raw.write('{"name"');
  raw.leave();
  await raw.closed;
  const answer = await send(server, '/things', { method: 'POST', headers: JSON_BODY, body: '{"name":"n"}' });
  assert.deepEqual(answer.json, { handled: 1 });
});

test('a body may come in many pieces', async (t) => {
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'POST',
      path: '/things',
      operationId: 'c',
      access: 'public',
      body: Body,
      handle: ({ body }) => ok(body),
    }),
  ]);
  const name = 'ä'.repeat(300_000);
  const answer = await send(server, '/things', {
    method: 'POST',
    headers: JSON_BODY,
    body: JSON.stringify({ name }),
  });
  assert.deepEqual(answer.json, { name });
  const raw = new RawConnection(server);
  raw.write(
    'POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  );
  for (const piece of ['4\r\n{"na\r\n', '4\r\nme":\r\n', '4\r\n"n"}\r\n', '0\r\n\r\n']) raw.write(piece);
  await raw.until((text) => text.endsWith('{"name":"n"}'));
  raw.leave();
});

test('requests on one connection are answered in their order', async (t) => {
  const server = await serve(t, [
    route(() => ok({ n: 1 }), 'GET', '/a'),
    route(() => noContent(), 'DELETE', '/b'),
  ]);
  const raw = new RawConnection(server);
  const head = Object.entries(GOOD).map(([name, value]) => `${name}: ${value}\r\n`);
  const request = (method: string, path: string) =>
    `${method} ${path} HTTP/1.1\r\nHost: x\r\n${head.join('')}\r\n`;
  raw.write(
    request('HEAD', '/a') +
      request('GET', '/a') +
      request('DELETE', '/b') +
      request('POST', '/a') +
      request('GET', '/a'),
  );
  await raw.until((text) => text.split('{"n":1}').length === 3);
  const statuses = [...raw.text.matchAll(/HTTP\/1\.1 (\d+)/g)].map((match) => match[1]);
  assert.deepEqual(statuses, ['200', '200', '204', '405', '200']);
  raw.leave();
});
