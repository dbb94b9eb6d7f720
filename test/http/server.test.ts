import assert from 'node:assert/strict';
import test from 'node:test';
import type { Readiness } from '#src/contract/wire/health.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { createServer } from '#src/http/server.ts';
import { deferred } from '#test/support/deferred.ts';
import { httpDefaults } from './http-defaults.ts';
import { auth, RawConnection, send, serve } from './test-server.ts';
import { docs } from './thing-routes.ts';

const defaults = () => httpDefaults({ error: () => {} });

test('the error for a port in use has one line', async (t) => {
  const server = await serve(t, []);
  const taken = { host: '127.0.0.1', port: server.port };
  await assert.rejects(createServer({ ...defaults(), routes: [], auth, listen: taken }), {
    message: `Cannot listen on 127.0.0.1:${server.port}: another program uses the port. Stop that program (ss -ltnp shows it), or set TROUPE_PORT to another port.`,
  });
});

test('a route with an unknown action, or a route that is declared twice, keeps the server from starting', async () => {
  const route = (access: 'public' | { action: string }) =>
    defineRoute({ ...docs, method: 'GET', path: '/x', operationId: 'x', access, handle: () => ok({}) });
  await assert.rejects(
    createServer({ ...defaults(), routes: [route({ action: 'fly' })], auth }),
    /A route needs an action that is declared\. Broken by: x/,
  );
  await assert.rejects(
    createServer({ ...defaults(), routes: [route('public'), route('public')], auth }),
    /A method of a path is declared once\. Broken by: GET \/x/,
  );
});

test('health needs no token, and readiness gives the reason when the server is not ready', async (t) => {
  let state: Readiness = { ready: false, reason: 'starting' };
  const server = await serve(
    t,
    healthRoutes(
      () => state,
      () => false,
    ),
  );
  const health = await send(server, '/healthz', { headers: {} });
  const starting = await send(server, '/readyz', { headers: {} });
  state = { ready: true };
  const ready = await send(server, '/readyz', { headers: {} });
  assert.deepEqual([health.status, health.json], [200, { status: 'ok' }]);
  assert.deepEqual(
    [starting.status, starting.json, starting.headers['retry-after']],
    [503, { ready: false, reason: 'starting' }, '1'],
  );
  assert.deepEqual([ready.status, ready.json], [200, { ready: true }]);
});

test('a server that closes answers requests in flight, accepts no new requests, and ends idle connections', async (t) => {
  const entered = deferred();
  const release = deferred();
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/slow',
      operationId: 'slow',
      access: 'public',
      async handle() {
        entered.resolve();
        await release.promise;
        return ok({ done: true });
      },
    }),
  ]);
  const idle = new RawConnection(server);
  idle.write('GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n');
  await idle.until((text) => text.includes('not_found'));
  const slow = send(server, '/slow', { headers: {} });
  await entered.promise;
  const closed = server.close(10_000);
  await assert.rejects(send(server, '/slow', { headers: {} }), { code: 'ECONNREFUSED' });
  release.resolve();
  assert.deepEqual((await slow).json, { done: true });
  await closed;
  await idle.closed;
  await server.close();
});

test('closing does not wait for requests that do not end', async (t) => {
  const entered = deferred();
  const server = await serve(t, [
    defineRoute({
      ...docs,
      method: 'GET',
      path: '/never',
      operationId: 'never',
      access: 'public',
      handle() {
        entered.resolve();
        return new Promise(() => {});
      },
    }),
  ]);
  const raw = new RawConnection(server);
  raw.write('GET /never HTTP/1.1\r\nHost: x\r\n\r\n');
  await entered.promise;
  await server.close(20);
  await raw.closed;
});
