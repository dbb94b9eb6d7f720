/** Requests find the home of the notebook or conversation that their path, header or body names. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import Type from 'typebox';
import { AppError } from '#src/base/errors/errors.ts';
import { defer, ok, stream } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import type { ServerOptions } from '#src/http/server.ts';
import { NO_STORE } from '#test/http/http-defaults.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { principal, RawConnection, send } from '../http/test-server.ts';
import { docs, use } from '../http/thing-routes.ts';
import { startTwoWorkers } from './two-workers.ts';

const LARGE_TEXT = 'x'.repeat(600_000);

/** Returns the routes of a worker. The answer of each route names the worker that carried it out. */
function routesOf(worker: number, runs: Map<string, string>, gate: Promise<void>): readonly Route[] {
  const answer = () => ok({ worker });
  const events = () =>
    stream(() => ({ writable() {}, close() {}, cutOff() {}, probe: () => Buffer.from(':') }));
  const responses = { 200: { description: 'd', contentType: 'text/event-stream' } };
  const body = Type.Object({ about: Type.Optional(Type.String()), text: Type.Optional(Type.String()) });
  const declared = { ...docs, access: use };
  return [
    defineRoute({
      ...declared,
      method: 'PATCH',
      path: '/notebooks/:notebookId',
      operationId: 'patchNotebook',
      body,
      handle: answer,
    }),
    defineRoute({
      ...declared,
      method: 'POST',
      path: '/notebooks/:notebookId/copies',
      operationId: 'copyNotebook',
      body,
      handle: answer,
    }),
    defineRoute({
      ...declared,
      method: 'GET',
      path: '/notebooks/:notebookId',
      operationId: 'getNotebook',
      readsStoreOnly: true,
      handle: answer,
    }),
    defineRoute({
      ...declared,
      method: 'GET',
      path: '/sessions/:sessionId',
      operationId: 'getSession',
      handle: async () => {
        await gate;
        return answer();
      },
    }),
    defineRoute({
      ...declared,
      method: 'GET',
      path: '/sessions/:sessionId/events',
      operationId: 'getEvents',
      query: Type.Object({ ticket: Type.Optional(Type.String()) }),
      responses,
      handle: events,
    }),
    defineRoute({
      ...declared,
      method: 'GET',
      path: '/sessions/:sessionId/result',
      operationId: 'getResult',
      handle: () => defer(gate.then(answer), (error) => ({ message: error.message })),
    }),
    defineRoute({
      ...declared,
      method: 'POST',
      path: '/code',
      operationId: 'runCode',
      headers: { 'service-session-id': 'd' },
      homeOf: ({ headers }) => ({ id: headers['service-session-id'] }),
      body,
      handle: answer,
    }),
    defineRoute({
      ...declared,
      method: 'POST',
      path: '/runs/:runId/cancel',
      operationId: 'cancelRun',
      homeOf({ params }) {
        const id = runs.get(params.runId);
        return id === undefined ? undefined : { id };
      },
      handle: answer,
    }),
    defineRoute({
      ...declared,
      method: 'POST',
      path: '/sessions',
      operationId: 'openSession',
      bodyLimitBytes: 2 * LARGE_TEXT.length,
      body,
      homeInBody: true,
      homeOf: ({ body: { about } }) => ({ id: about }),
      handle: ({ body: { text = '' } }) => ok({ worker, length: text.length }),
    }),
  ];
}

async function start(t: TestContext, options: Partial<ServerOptions> = {}) {
  const gate = deferred();
  const runsOf = [new Map<string, string>(), new Map<string, string>()] as const;
  const issued = new Set(['ticket-of-0', 'ticket-of-1']);
  const cluster = await startTwoWorkers(t, (worker) => routesOf(worker, runsOf[worker]!, gate.promise), {
    ...options,
    redeemTicket(ticket) {
      if (!issued.delete(ticket)) throw new AppError('unauthenticated', 'The ticket was used.');
      return { ...principal, workspaceId: workspaceId as typeof principal.workspaceId };
    },
  });
  const workspaceId = cluster.workspaceIn(0);
  const [here, there] = [cluster.notebookIn(0, workspaceId), cluster.notebookIn(1, workspaceId)];
  const headers = { authorization: 'Bearer good', 'service-workspace-id': workspaceId };
  const jsonHeaders = { ...headers, 'content-type': 'application/json' };
  return {
    ...cluster,
    first: cluster.servers[0],
    workspaceId,
    here,
    there,
    headers,
    jsonHeaders,
    runsOf,
    gate,
  };
}

const workerOf = ({ json }: { readonly json: unknown }) => (json as { worker?: number }).worker;

test('a request whose path names a notebook is carried out in the home of the notebook, not of its workspace', async (t) => {
  const { first, here, there, jsonHeaders: headers } = await start(t);
  for (const [id, worker] of [
    [here, 0],
    [there, 1],
  ] as const) {
    const patched = await send(first, `/notebooks/${id}`, { method: 'PATCH', headers, body: '{}' });
    assert.equal(workerOf(patched), worker);
  }
});

test('a notebook that is only read is answered where the request arrives', async (t) => {
  const { first, there, headers } = await start(t);
  assert.equal(workerOf(await send(first, `/notebooks/${there}`, { headers })), 0);
});

test('a request whose header names a session is carried out in the home of that session', async (t) => {
  const { first, here, there, jsonHeaders } = await start(t);
  for (const [id, worker] of [
    [here, 0],
    [there, 1],
  ] as const) {
    const headers = { ...jsonHeaders, 'service-session-id': id };
    const ran = await send(first, '/code', { method: 'POST', headers, body: '{}' });
    assert.equal(workerOf(ran), worker);
  }
});

test('a request that names a run is carried out in the home of its session, or where it arrived when the run does not exist', async (t) => {
  const { first, servers, here, there, headers, runsOf } = await start(t);
  runsOf[0].set('run_1', here).set('run_2', there);
  runsOf[1].set('run_2', there);
  const cancel = async (id: string) =>
    workerOf(await send(first, `/runs/${id}/cancel`, { method: 'POST', headers }));
  assert.deepEqual([await cancel('run_1'), await cancel('run_2'), await cancel('run_3')], [0, 1, 0]);
  const unknown = await send(servers[1], '/runs/run_3/cancel', { method: 'POST', headers });
  assert.equal(workerOf(unknown), 1);
});

test('a request for a run that its home has just deleted is answered in the home, although other workers still see the run', async (t) => {
  const { servers, there, headers, runsOf } = await start(t);
  runsOf[0].set('run_1', there);
  for (const server of servers)
    assert.equal(workerOf(await send(server, '/runs/run_1/cancel', { method: 'POST', headers })), 1);
});

test('a request whose body names a notebook is forwarded with that body once it was checked', async (t) => {
  const { first, here, there, jsonHeaders: headers } = await start(t);
  const open = (body: object) =>
    send(first, '/sessions', { method: 'POST', headers, body: JSON.stringify(body) });
  for (const text of ['short', LARGE_TEXT]) {
    for (const [about, worker] of [
      [here, 0],
      [there, 1],
      [undefined, 0],
    ] as const)
      assert.deepEqual((await open({ about, text })).json, { worker, length: text.length });
  }
  assert.equal((await open({ about: there, text: 1 })).code, 'invalid_request');
});

test('a request whose body names a notebook that moves meanwhile is carried out in its new home', async (t) => {
  const { first, there, jsonHeaders: headers, peers, giveAllTo } = await start(t);
  giveAllTo(0, [1]); // the first worker does not know yet that it owns all slots
  const asked = t.mock.method(peers[1], 'ownsSlot').mock;
  const body = JSON.stringify({ about: there, text: 'moved' });
  const answer = send(first, '/sessions', { method: 'POST', headers, body });
  await eventually('the request was sent on twice', () => asked.callCount() >= 2);
  giveAllTo(0);
  assert.deepEqual((await answer).json, { worker: 0, length: 5 });
});

test('a notebook that moves while its home still reads the body is opened in its new home', async (t) => {
  const { servers, peers, there, jsonHeaders: headers, giveAllTo } = await start(t);
  const body = JSON.stringify({ about: there, text: LARGE_TEXT }); // read in slices
  const arrived = t.mock.method(peers[1], 'ownsSlot', (slot: number) => {
    arrived.mock.restore();
    const owns = peers[1].ownsSlot(slot);
    giveAllTo(0);
    return owns;
  });
  const answer = await send(servers[0], '/sessions', { method: 'POST', headers, body });
  assert.deepEqual(answer.json, { worker: 0, length: LARGE_TEXT.length });
});

test('a ticket opens the stream of a session in the worker that issued it, once', async (t) => {
  const { first, there } = await start(t);
  const connection = new RawConnection(first);
  t.after(() => connection.leave());
  const get = (path: string) => connection.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  get(`/sessions/${there}/events?ticket=ticket-of-1`);
  await connection.until((text) => text.includes('text/event-stream'));
  const again = await send(first, `/sessions/${there}/events?ticket=ticket-of-1`, { headers: {} });
  assert.equal(again.code, 'unauthenticated');
});

test('a notebook counts as busy only in its home, until its requests, deferred answers and streams have ended', async (t) => {
  const { first, workspaceId, here, there, headers, busyHomes, gate } = await start(t);
  const paths = [`/sessions/${here}`, `/sessions/${there}/result`];
  const answers = paths.map((path) => send(first, path, { headers }));
  const connection = new RawConnection(first);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  connection.write(`GET /sessions/${there}/events HTTP/1.1\r\nhost: x\r\n${lines.join('')}\r\n`);
  await connection.until((text) => text.includes('text/event-stream'));
  await send(first, `/notebooks/${here}`, { headers });
  const idsIn = (worker: 0 | 1) => {
    for (const home of busyHomes(worker)) assert.equal(home.workspaceId, workspaceId);
    return new Set(busyHomes(worker).map(({ id }) => id));
  };
  await eventually('all are under way', () => idsIn(0).has(here) && busyHomes(1).length >= 2);
  assert.deepEqual(idsIn(1), new Set([there]));
  gate.resolve();
  await Promise.all(answers);
  connection.leave();
  await eventually('all are over', () => busyHomes(0).length + busyHomes(1).length === 0);
});

test('of fifty requests with one key and different homes, a shared turn admits one', async (t) => {
  const inUse = new Set<string>();
  let isInSharedTurn = false;
  const { servers, here, there, jsonHeaders } = await start(t, {
    store: {
      ...NO_STORE,
      decide(decision) {
        setImmediate(() => {
          isInSharedTurn = true;
          decision();
          isInSharedTurn = false;
        });
      },
    },
    idempotency: {
      begin({ key, path, isShared }) {
        assert.equal(isShared, path !== `/notebooks/${there}/copies`);
        assert.equal(isInSharedTurn, isShared);
        if (inUse.has(path + key)) throw new AppError('idempotency_in_progress', 'The key is in use.');
        inUse.add(path + key);
        return { kind: 'proceed', complete() {}, abandon() {} };
      },
    },
  });
  const race = async (path: string, requestOf: (id: string) => object) => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) => {
        const { headers = {}, body = {} } = requestOf(n % 4 < 2 ? here : there) as Record<string, object>;
        const server = servers[n % 2]!;
        const all = { ...jsonHeaders, ...headers, 'idempotency-key': 'one' };
        return send(server, path, { method: 'POST', headers: all, body: JSON.stringify(body) });
      }),
    );
    const codes = answers.map(({ status, code }) => code ?? status).sort();
    assert.deepEqual(codes, [200, ...Array.from({ length: 49 }, () => 'idempotency_in_progress')]);
  };
  await race('/code', (id) => ({ headers: { 'service-session-id': id } }));
  await race('/sessions', (about) => ({ body: { about } }));
  await race(`/notebooks/${there}/copies`, () => ({}));
});
