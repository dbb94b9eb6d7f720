import assert from 'node:assert/strict';
import test from 'node:test';
import Type from 'typebox';
import { noContent, ok, type Reply } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { deferred } from '#test/support/deferred.ts';
import { GOOD, JSON_BODY, principal, RawConnection, send, serve } from './test-server.ts';
import { docs, thingRoute } from './thing-routes.ts';

const Body = Type.Object({ name: Type.String() }, { additionalProperties: false });

/** Returns a route that replies with the result of `handle` for the body. */
const createThing = (handle: (body: { readonly name: string }) => Reply) =>
  defineRoute({
    ...docs,
    method: 'POST',
    path: '/things',
    operationId: 'createThing',
    access: 'public',
    body: Body,
    handle: ({ body }) => handle(body),
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
    thingRoute(() => ok({})),
  ]);
  const raw = new RawConnection(server);
  raw.write('GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await entered.promise;
  raw.leave();
  assert.equal(await aborted.promise, true);
  assert.equal((await send(server, '/thing')).status, 200);
});

test('a request reaches no handler if its client leaves within the body', async (t) => {
  let handled = 0;
  const server = await serve(t, [createThing(() => ok({ handled: ++handled }))]);
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

test('a body may arrive in many pieces', async (t) => {
  const server = await serve(t, [createThing((body) => ok(body))]);
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
    thingRoute(() => ok({ n: 1 }), 'GET', '/a'),
    thingRoute(() => noContent(), 'DELETE', '/b'),
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
