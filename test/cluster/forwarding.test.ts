import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { inSlices } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { FRAME, FrameSocket } from '#src/cluster/peers/frame-socket.ts';
import { AdmittedRequest } from '#src/http/edge/admission.ts';
import type { Server } from '#src/http/server.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { send } from '../http/test-server.ts';
import { everywhere, startTwoWorkers } from './two-workers.ts';
import { LARGE, routesOf, type Seen } from './worker-routes.ts';

async function start(t: Parameters<typeof startTwoWorkers>[0]) {
  const gate = deferred();
  const seen: Seen[] = [0, 1].map(() => ({ begun: 0, subscribers: [], writable: 0, closed: 0, aborted: 0 }));
  const cluster = await startTwoWorkers(t, (worker) => routesOf(worker, seen[worker]!, gate.promise));
  const headers = { authorization: 'Bearer good', 'service-workspace-id': cluster.workspaceIn(1) };
  return { ...cluster, first: cluster.servers[0], headers, home: seen[1]!, gate };
}

test('a request is carried out in the home of its workspace, unchanged', async (t) => {
  const { first, headers } = await start(t);
  const sent = { ...headers, 'if-none-match': '"0"', 'x-request-id': 'mine' };
  const answer = await send(first, '/things/a%2Eb?limit=7', { headers: sent });
  assert.deepEqual(answer.json, {
    worker: 1,
    thingId: 'a.b',
    limit: 7,
    'if-none-match': '"0"',
    requestId: 'mine',
    remoteAddress: '127.0.0.1',
    in: headers['service-workspace-id'],
  });
  assert.equal(answer.headers.etag, '"1"');
  assert.equal(answer.headers['x-request-id'], 'mine');
  assert.equal(answer.headers['cache-control'], 'no-store');
});

test('the home checks the right of the caller again, because the caller may have lost it since the first check', async (t) => {
  let checks = 0;
  const authorize = () => {
    if (++checks === 2) throw new AppError('role_too_low', 'You may not any more.');
  };
  const seen: Seen[] = [0, 1].map(() => ({ begun: 0, subscribers: [], writable: 0, closed: 0, aborted: 0 }));
  const { servers, workspaceIn } = await startTwoWorkers(
    t,
    (worker) => routesOf(worker, seen[worker]!, Promise.resolve()),
    { auth: { ...everywhere, authorize } },
  );
  const headers = { authorization: 'Bearer good', 'service-workspace-id': workspaceIn(1) };
  const refused = await send(servers[0], '/things/a', { method: 'DELETE', headers });
  assert.deepEqual([refused.status, refused.code, checks], [403, 'role_too_low', 2]);
});

test('a request that only reads the store is answered in the worker that received it', async (t) => {
  const { first, headers } = await start(t);
  assert.deepEqual((await send(first, '/anywhere', { headers })).json, { worker: 0 });
});

test('a body is forwarded after its check, and the answer has status and headers', async (t) => {
  const { first, headers } = await start(t);
  const jsonHeaders = { ...headers, 'content-type': 'application/json' };
  const made = await send(first, '/things', { method: 'POST', headers: jsonHeaders, body: '{"name":"x"}' });
  assert.deepEqual(
    [made.status, made.json, made.headers.location],
    [201, { worker: 1, name: 'x' }, '/things/1'],
  );
  const refused = await send(first, '/things', { method: 'POST', headers: jsonHeaders, body: '{}' });
  assert.deepEqual([refused.status, refused.code], [400, 'invalid_request']);
  const gone = await send(first, '/things/1', { method: 'DELETE', headers });
  assert.deepEqual([gone.status, gone.text], [204, '']);
  const head = await send(first, '/things/1', { method: 'HEAD', headers });
  assert.deepEqual([head.status, head.text], [200, '']);
  assert.ok(Number(head.headers['content-length']) > 0);
});

test('a large answer arrives whole when the client reads it piece by piece', async (t) => {
  const { first, headers } = await start(t);
  const request = http.get({ host: first.host, port: first.port, path: '/large', headers, agent: false });
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  assert.equal(response.headers['content-length'], String(LARGE.byteLength));
  const pieces: Buffer[] = [];
  for await (const piece of response) {
    pieces.push(piece as Buffer);
    await nextTurn();
  }
  assert.ok(Buffer.concat(pieces).equals(LARGE));
});

test("a body of bytes is forwarded as it is read, and the reader's pace slows the client", async (t) => {
  const { first, headers, home, gate } = await start(t);
  const path = '/bytes';
  const request = http.request({
    host: first.host,
    port: first.port,
    path,
    method: 'PUT',
    headers,
    agent: false,
  });
  let isSent = false;
  request.on('finish', () => {
    isSent = true;
  });
  const response = once(request, 'response');
  request.end(LARGE);
  await eventually('the handler has begun', () => home.begun === 1);
  assert.equal(await becomes(() => isSent, 300), false, 'the body is held back until somebody reads it');
  gate.resolve();
  const [answer] = (await response) as [http.IncomingMessage];
  assert.deepEqual(await json(answer), { worker: 1, bytes: LARGE.byteLength });
  const tooLarge = Buffer.alloc(LARGE.byteLength + 1);
  const refused = await send(first, '/bytes', { method: 'PUT', headers, body: tooLarge });
  assert.equal(refused.status, 413);
});

test('an upload ends when its caller loses access at its home, even if most of the body is still to come', async (t) => {
  const { first, servers, headers, home, gate } = await start(t);
  const { host, port } = first;
  const request = http.request({ host, port, path: '/bytes', method: 'PUT', headers, agent: false });
  request.on('error', () => {});
  const response = once(request, 'response');
  request.write(LARGE.subarray(0, 65_536)); // with more bytes under way the client might fail before it reads the answer
  await eventually('the handler has begun', () => home.begun === 1);
  servers[1].open.endPending(() => {
    throw new AppError('unauthenticated', 'The token was revoked.');
  });
  const [answer] = (await response) as [http.IncomingMessage];
  assert.equal(answer.statusCode, 401);
  gate.resolve();
  request.destroy();
  await eventually('nothing is left of it', () =>
    servers.every((server) => server.open.load().requests === 0),
  );
  assert.equal((await send(first, '/things/1', { headers })).status, 200);
});

test('an empty body of bytes is forwarded as well', async (t) => {
  const { first, headers, gate } = await start(t);
  gate.resolve();
  assert.deepEqual((await send(first, '/bytes', { method: 'PUT', headers, body: '' })).json, {
    worker: 1,
    bytes: 0,
  });
});

test('an event stream of another worker arrives event by event, and ends in that worker when the client leaves', async (t) => {
  const { first, headers, home } = await start(t);
  const { request, response } = await openEvents(first, headers);
  assert.equal(response.headers['content-type'], 'text/event-stream');
  await eventually('the home has a subscriber', () => home.subscribers.length === 1);
  home.subscribers[0]!(Buffer.from('data: one\n\n'));
  await eventually('the event has arrived', () => response.text.endsWith('data: one\n\n'));
  request.destroy();
  await eventually('the stream is closed', () => home.closed === 1);
});

test('when the reader of a stream stops, the other worker sends at most one window of bytes', async (t) => {
  const { first, headers, home } = await start(t);
  const { response } = await openEvents(first, headers);
  response.stop();
  await eventually('the home has a subscriber', () => home.subscribers.length === 1);
  const piece = Buffer.alloc(64 * 1024, 'x');
  const most = 64 * 1024 * 1024;
  let written = 0;
  // The system takes some megabytes into its buffers, and then nothing more.
  for (let isStopped = false; !isStopped && written < most; written += piece.byteLength) {
    const asked = home.writable;
    if (!home.subscribers[0]!(piece)) isStopped = !(await becomes(() => home.writable > asked, 500));
  }
  assert.ok(written < most);
  response.goOn();
  await eventually('the home may write again', () => home.writable > 0);
});

test('the handler learns at once that the client has left', async (t) => {
  const { first, headers, home } = await start(t);
  const request = http.get({ host: first.host, port: first.port, path: '/slow', headers, agent: false });
  request.on('error', () => {});
  await eventually('the handler has begun', () => home.begun === 1);
  request.destroy();
  await eventually('the handler hears of it', () => home.aborted === 1);
});

test('a client that leaves while its large body is checked gets no answer', async (t) => {
  const { first, headers } = await start(t);
  // A slice of a body waits for one slice of each of these, so the body takes at least some 400 ms.
  let hasLeft = false;
  const others = Promise.all(Array.from({ length: 100 }, () => inSlices(until(() => hasLeft))));
  const isHandled = () => [...first.open.inFlight].some(({ phase }) => phase.name === 'handling');
  const left = t.mock.method(AdmittedRequest.prototype, 'abandon').mock;
  const request = http.request({
    host: first.host,
    port: first.port,
    path: '/things',
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    agent: false,
  });
  request.on('error', () => {});
  request.end(`{"name":"${'x'.repeat(300_000)}"}`);
  await eventually('the whole body has come', isHandled);
  request.destroy();
  await eventually('the server knows that the client has left', () => left.callCount() === 1);
  hasLeft = true;
  await others;
  await eventually('the request is over', () => first.open.load().requests === 0);
  assert.equal((await send(first, '/things/1', { headers })).status, 200);
});

test('a request for a workspace that has moved is refused by the former home and reaches the new home, even if this worker is the new home', async (t) => {
  const { first, headers, peers, giveAllTo } = await start(t);
  giveAllTo(0, [1]); // the first worker does not know yet that it owns all slots
  const asked = t.mock.method(peers[1], 'ownsSlot').mock;
  const forwarded = t.mock.method(peers[1], 'forward').mock;
  const answer = send(first, '/things/1', { headers });
  await eventually('the request was sent on twice', () => asked.callCount() >= 2);
  giveAllTo(0);
  assert.equal(((await answer).json as { worker: number }).worker, 0);
  assert.equal(forwarded.callCount(), 0, 'the former home carries nothing out, and forwards nothing');
});

test('a request that was lost with its worker is answered 503 with retry-after', async (t) => {
  const { first, headers, home, peers } = await start(t);
  const answer = send(first, '/slow', { headers });
  await eventually('the handler has begun', () => home.begun === 1);
  peers[1][Symbol.dispose]();
  const { status, code, headers: answered } = await answer;
  assert.deepEqual([status, code, answered['retry-after']], [503, 'unavailable', '1']);
});

test('workers answer forwarded requests from other workers only', async (t) => {
  const { peers, folder } = await start(t);
  peers[1].onAsked('log', () => 'lines');
  assert.deepEqual(await peers[0].askOthers('log', {}), ['lines']);
  const socket = connect(join(folder, 'peer-1.sock'));
  let heard = 0;
  const closed = once(socket, 'close');
  const frames = new FrameSocket(socket, { frame: () => heard++, closed: () => {} });
  frames.send(FRAME.hello, 0, Buffer.alloc(32, 'guess'));
  frames.send(FRAME.ask, 1, Buffer.from('{"topic":"log"}'));
  await closed;
  assert.equal(heard, 0);
});

interface OpenEvents {
  readonly request: http.ClientRequest;
  readonly response: {
    readonly headers: http.IncomingHttpHeaders;
    readonly text: string;
    stop(): void;
    goOn(): void;
  };
}

async function openEvents(server: Server, headers: Record<string, string>): Promise<OpenEvents> {
  const request = http.get({ host: server.host, port: server.port, path: '/events', headers, agent: false });
  request.on('error', () => {});
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  let text = '';
  response.on('data', (piece: Buffer) => {
    text += piece.toString();
  });
  response.on('error', () => {});
  return {
    request,
    response: {
      headers: response.headers,
      get text() {
        return text;
      },
      stop: () => void response.pause(),
      goOn: () => void response.resume(),
    },
  };
}

/** Takes steps until `isOver` returns true. */
function* until(isOver: () => boolean): Generator<undefined, void> {
  while (!isOver()) yield;
}

/**
 * Resolves with whether the condition becomes true within the time. Use it for events that should not happen.
 * On a busy machine a later change may be missed, so no test fails because of the time.
 */
async function becomes(isTrue: () => boolean, withinMs: number): Promise<boolean> {
  for (const deadline = Date.now() + withinMs; !isTrue(); ) {
    if (Date.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 5)); // nothing announces that something does not happen
  }
  return true;
}
