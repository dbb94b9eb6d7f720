/**
 * Requests whose body takes long to arrive, while the caller loses its rights or the client leaves.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { json } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import Type from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import { BodyCharge, BodyMemory } from '#src/http/edge/body-memory.ts';
import { BodyStream } from '#src/http/edge/body-stream.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import type { ServerOptions } from '#src/http/server.ts';
import type { WireResponse } from '#src/http/wire-exchange.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { GOOD, JSON_BODY, serve } from './test-server.ts';
import { docs, use } from './thing-routes.ts';

const NOBODY = { principal: undefined, holder: undefined };
const revoked = () => {
  throw new AppError('unauthenticated', 'The token was revoked.');
};

/**
 * A server with three routes: for JSON, with a preparation, and for bytes. `outcomes` are the
 * outcomes of requests to them.
 */
async function serveBodies(t: TestContext, options: Partial<ServerOptions> = {}) {
  const seen = { handled: 0, bytes: 0, begun: 0, errors: [] as unknown[] };
  const preparing = deferred();
  const reading = deferred();
  const body = Type.Object({ name: Type.String() });
  const handle = () => ok({ handled: ++seen.handled });
  const server = await serve(
    t,
    [
      defineRoute({ ...docs, method: 'POST', path: '/things', operationId: 'a', access: use, body, handle }),
      defineRoute({
        ...docs,
        method: 'POST',
        path: '/prepared',
        operationId: 'b',
        access: use,
        sharedTurn: true,
        prepare: () => {
          seen.begun++;
          return preparing.promise;
        },
        handle,
      }),
      defineRoute({
        ...docs,
        method: 'PUT',
        path: '/bytes',
        operationId: 'c',
        access: use,
        takesBytes: true,
        async handle({ content }) {
          seen.begun++;
          await reading.promise;
          try {
            for await (const piece of content) seen.bytes += piece.byteLength;
          } catch (error) {
            seen.errors.push(error);
            throw error;
          }
          return handle();
        },
      }),
    ],
    options,
  );
  const begin = (method: string, path: string, headers: Record<string, string> = JSON_BODY) => {
    const request = http.request({
      host: server.host,
      port: server.port,
      method,
      path,
      headers,
      agent: false,
    });
    const answered = once(request, 'response').then(async ([answer]: http.IncomingMessage[]) => ({
      status: answer!.statusCode,
      body: (await json(answer!)) as { readonly code?: string; readonly handled?: number },
    }));
    answered.catch(() => undefined);
    request.on('error', () => undefined);
    return { request, answered };
  };
  return { server, seen, preparing, reading, begin };
}

test('a body that arrives after its caller has lost access is refused', async (t) => {
  const { server, seen, begin } = await serveBodies(t);
  const { request, answered } = begin('POST', '/things', { ...JSON_BODY, 'content-length': '12' });
  request.write('{"name"');
  await eventually('the request was admitted', () => server.open.load().requests === 1);
  server.open.endPending(revoked);
  request.end(':"x"}');
  const { status, body } = await answered;
  assert.deepEqual([status, body.code, seen.handled], [401, 'unauthenticated', 0]);
});

test('a body is accepted when only other callers have lost access before its arrival', async (t) => {
  const { server, begin } = await serveBodies(t);
  const { request, answered } = begin('POST', '/things', { ...JSON_BODY, 'content-length': '12' });
  request.write('{"name"');
  await eventually('the request was admitted', () => server.open.load().requests === 1);
  server.open.endPending((caller) => caller);
  request.end(':"x"}');
  assert.deepEqual((await answered).body, { handled: 1 });
});

test('a body that arrives after the role of its caller was lowered is handled with that role', async (t) => {
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'POST',
      path: '/things',
      operationId: 'a',
      access: use,
      body: Type.Object({}),
      handle: ({ principal }) => ok({ role: principal.role }),
    }),
  ]);
  const { host, port } = server;
  const headers = { ...JSON_BODY, 'content-length': '2' };
  const request = http.request({ host, port, method: 'POST', path: '/things', headers, agent: false });
  const response = once(request, 'response');
  request.write('{');
  await eventually('the request was admitted', () => server.open.load().requests === 1);
  server.open.endPending((caller) => ({ ...caller, role: 'viewer' }));
  request.end('}');
  const [answer] = (await response) as [http.IncomingMessage];
  assert.deepEqual(await json(answer), { role: 'viewer' });
});

test('a request whose caller loses access while it is prepared is refused', async (t) => {
  const { server, seen, preparing, begin } = await serveBodies(t);
  const { request, answered } = begin('POST', '/prepared', GOOD);
  request.end();
  await eventually('the request is prepared', () => seen.begun === 1);
  server.open.endPending(revoked);
  preparing.resolve();
  const { status, body } = await answered;
  assert.deepEqual([status, body.code, seen.handled], [401, 'unauthenticated', 0]);
});

test('an idempotency key can be used again when its caller loses access during the preparation of the request', async (t) => {
  const log: string[] = [];
  const start = {
    kind: 'proceed',
    complete: () => log.push('complete'),
    abandon: () => log.push('abandon'),
  } as const;
  const { server, seen, preparing, begin } = await serveBodies(t, { idempotency: { begin: () => start } });
  const { request, answered } = begin('POST', '/prepared', { ...GOOD, 'idempotency-key': 'k' });
  request.end();
  await eventually('the request is prepared', () => seen.begun === 1);
  server.open.endPending(revoked);
  preparing.resolve();
  assert.equal((await answered).status, 401);
  await eventually('the key is free', () => log.length === 1);
  assert.deepEqual([log, seen.handled], [['abandon'], 0]);
});

test('an upload ends when its caller loses access', async (t) => {
  const { server, seen, reading, begin } = await serveBodies(t);
  const { request, answered } = begin('PUT', '/bytes', { ...GOOD, 'content-length': '1000' });
  request.write('half');
  reading.resolve();
  await eventually('some of it was read', () => seen.bytes === 4);
  server.open.endPending(revoked);
  const { status, body } = await answered;
  assert.deepEqual([status, body.code], [401, 'unauthenticated']);
  await eventually('its reader hears of it', () => seen.errors.length === 1);
  assert.equal(seen.handled, 0);
  assert.equal(server.open.load().requests, 0);
});

test('a client that leaves before its whole body is read does not make the body look shorter', async (t) => {
  const { server, seen, reading, begin } = await serveBodies(t);
  const { request } = begin('PUT', '/bytes', GOOD);
  request.end(Buffer.alloc(100_000, 'x'));
  await once(request, 'finish');
  await eventually('the handler has begun', () => seen.begun === 1);
  request.destroy();
  // The server accepts the connection of the next request only after the end of this one.
  for (let n = 0; n < 3; n++) {
    const { request: next, answered } = begin('POST', '/things');
    next.end('{"name":"x"}');
    await answered;
  }
  reading.resolve();
  await eventually('the request is over', () => server.open.load().requests === 0);
  assert.ok(seen.bytes === 100_000 || seen.errors.length === 1);
});

test('an upload ends if its caller cannot be checked, and callers of later uploads are still checked', async (t) => {
  const { server, seen, begin } = await serveBodies(t);
  const uploads = [1, 2].map(() => {
    const { request, answered } = begin('PUT', '/bytes', { ...GOOD, 'content-length': '1000' });
    request.write('half');
    return answered;
  });
  await eventually('both have begun', () => seen.begun === 2);
  let checks = 0;
  server.open.endPending(() => {
    if (++checks === 1) throw new Error('the record of the caller is damaged');
    return revoked();
  });
  const ends = await Promise.all(uploads);
  assert.deepEqual(ends.map(({ status }) => status).sort(), [401, 500]);
  assert.equal(server.logged.length, 1);
});

test('a body whose end arrives after its client was paused is read whole, and its connection goes on', async () => {
  const done: string[] = [];
  let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
  const res: Pick<WireResponse, 'onData' | 'pause' | 'resume'> = {
    onData: (handler) => {
      onData = handler;
    },
    pause: () => done.push('paused'),
    resume: () => done.push('resumed'),
  };
  const content = new BodyStream(res as WireResponse, 4 << 20, BodyCharge.of(NOBODY, new BodyMemory()));
  onData(new ArrayBuffer((1 << 20) + 1), false);
  assert.deepEqual(done, ['paused']);
  onData(new ArrayBuffer(1 << 20), true);
  assert.deepEqual(done, ['paused', 'resumed']);
  let bytes = 0;
  for await (const piece of content) bytes += piece.byteLength;
  assert.equal(bytes, (2 << 20) + 1);
  assert.deepEqual(done, ['paused', 'resumed']);
});
