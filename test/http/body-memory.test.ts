/** How much memory the bodies of requests may take together. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import test, { type TestContext } from 'node:test';
import Type from 'typebox';
import type { WorkspaceId } from '#src/base/ids.ts';
import { BodyCharge, BodyMemory, MAX_BODY_MEMORY_BYTES } from '#src/http/edge/body-memory.ts';
import { BodyStream } from '#src/http/edge/body-stream.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import type { WireResponse } from '#src/http/wire-exchange.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { auth, JSON_BODY, principal, send, serve, type TestServer } from './test-server.ts';
import { docs, use } from './thing-routes.ts';

const BODY_BYTES = 16 * 1024 * 1024;
const LARGE = JSON.stringify({ name: 'x'.repeat(2 * 1024 * 1024) });

/** A server that knows every workspace, with a route whose handler waits for `handled`. */
async function serveBodies(t: TestContext, handled: Promise<void> = Promise.resolve()) {
  const body = Type.Object({ name: Type.String() });
  let begun = 0;
  const handle = async () => {
    begun++;
    await handled;
    return ok({});
  };
  const route = { ...docs, method: 'POST', access: use, body, bodyLimitBytes: BODY_BYTES, handle } as const;
  const bytes = defineRoute({
    ...docs,
    method: 'PUT',
    path: '/bytes',
    operationId: 'b',
    access: use,
    takesBytes: true,
    bodyLimitBytes: BODY_BYTES,
    async handle({ content }) {
      let count = 0;
      for await (const piece of content) count += piece.byteLength;
      return ok({ count });
    },
  });
  const server = await serve(t, [defineRoute({ ...route, path: '/things', operationId: 'a' }), bytes], {
    auth: {
      ...auth,
      authenticate: (_, workspaceHeader) => ({ ...principal, workspaceId: workspaceHeader as WorkspaceId }),
    },
  });
  return { ...server, begun: () => begun };
}

const headersOf = (workspaceId: string) => ({ ...JSON_BODY, 'service-workspace-id': workspaceId });

function post(server: TestServer, workspaceId: string, body: string) {
  return send(server, '/things', { method: 'POST', headers: headersOf(workspaceId), body });
}

/** Sends all of a body but its end. */
async function beginBody({ host, port }: TestServer, workspaceId: string, bytes: number) {
  const headers = { ...headersOf(workspaceId), 'content-length': String(bytes + 1) };
  const request = http.request({ host, port, path: '/things', method: 'POST', headers, agent: false });
  request.on('error', () => {});
  if (!request.write(Buffer.alloc(bytes, ' '))) await once(request, 'drain');
  return request;
}

/** Begins bodies that together fill the share of a workspace. */
async function fill(server: TestServer, workspaceId: string) {
  const requests = await Promise.all(
    Array.from({ length: 8 }, () => beginBody(server, workspaceId, BODY_BYTES - 1)),
  );
  await eventually('a further large body has no room', async () => {
    const { status } = await post(server, workspaceId, LARGE);
    return status === 503;
  });
  return requests;
}

test('unfinished bodies of one workspace leave room for others, and for small bodies', async (t) => {
  const server = await serveBodies(t);
  const requests = await fill(server, 'busy');
  const refused = await post(server, 'busy', LARGE);
  assert.deepEqual([refused.status, refused.code, refused.headers['retry-after']], [503, 'unavailable', '1']);
  assert.match(refused.text, /Too many large requests of this workspace/);
  assert.equal((await post(server, 'busy', '{"name":"n"}')).status, 200);
  assert.equal((await post(server, 'quiet', LARGE)).status, 200);
  for (const request of requests) request.destroy();
  await eventually('the room of bodies whose clients have left is free', async () => {
    const { status } = await post(server, 'busy', LARGE);
    return status === 200;
  });
});

test('unfinished bodies of two workspaces leave room for a third', async (t) => {
  const server = await serveBodies(t);
  await fill(server, 'busy');
  await fill(server, 'also-busy');
  assert.equal((await post(server, 'quiet', LARGE)).status, 200);
});

test('a body is charged until its request is answered', async (t) => {
  const { promise: handled, resolve: handle } = deferred();
  const server = await serveBodies(t, handled);
  const body = JSON.stringify({ name: 'x'.repeat(BODY_BYTES - 64) });
  const answers = Array.from({ length: 8 }, () => post(server, 'busy', body));
  await eventually('all eight are with the handler', () => server.begun() === 8);
  assert.equal((await post(server, 'busy', LARGE)).status, 503);
  handle();
  for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
  assert.equal((await post(server, 'busy', LARGE)).status, 200);
});

test('the bodies of a workspace may use exactly half of the memory that bodies of other workspaces leave', () => {
  const memory = new BodyMemory();
  const half = MAX_BODY_MEMORY_BYTES / 2;
  assert.equal(memory.take('a', half + 1), false);
  assert.equal(memory.take('a', half), true);
  assert.equal(memory.take('a', 1), false);
  assert.equal(memory.take('b', half / 2 + 1), false);
  assert.equal(memory.take('b', half / 2), true);
  assert.equal(
    memory.take('c', half / 4 + 1),
    false,
    'two workspaces leave room for a third, and it for a fourth',
  );
  assert.equal(memory.take('c', half / 4), true);
  memory.give('a', half);
  assert.equal(memory.take('c', 1), true);
});

test('an upload needs room as other bodies do, unless the upload is small', async (t) => {
  const server = await serveBodies(t);
  const upload = (workspaceId: string, bytes: number) =>
    send(server, '/bytes', {
      method: 'PUT',
      headers: headersOf(workspaceId),
      body: 'x'.repeat(bytes),
    });
  const requests = await fill(server, 'busy');
  const refused = await upload('busy', 2 * 1024 * 1024);
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
  assert.match(refused.text, /Too many large requests of this workspace/);
  assert.equal((await upload('busy', 1024)).status, 200);
  assert.deepEqual((await upload('quiet', 2 * 1024 * 1024)).json, { count: 2 * 1024 * 1024 });
  for (const request of requests) request.destroy();
  await eventually('there is room again', async () => {
    const { status } = await upload('busy', 2 * 1024 * 1024);
    return status === 200;
  });
});

test('exactly the unread bytes of an upload are charged, until they are read or dropped', async () => {
  const memory = new BodyMemory();
  const room = MAX_BODY_MEMORY_BYTES / 2;
  const open = () => {
    let onData: (chunk: ArrayBuffer, isLast: boolean) => void = () => {};
    const res: Pick<WireResponse, 'onData' | 'pause' | 'resume'> = {
      onData: (handler) => {
        onData = handler;
      },
      pause: () => {},
      resume: () => {},
    };
    const charge = BodyCharge.of({ principal: undefined, holder: undefined }, memory);
    const stream = new BodyStream(res as WireResponse, BODY_BYTES, charge);
    return { stream, receive: (bytes: number) => onData(new ArrayBuffer(bytes), false) };
  };
  assert.equal(memory.take('', room - 1000), true);
  const first = open();
  first.receive(1000);
  const second = open();
  second.receive(1);
  await assert.rejects(second.stream[Symbol.asyncIterator]().next(), { code: 'unavailable' });
  const reading = first.stream[Symbol.asyncIterator]();
  await reading.next();
  assert.equal(memory.take('', 1), false, 'the reader still works with the piece');
  first.receive(0);
  void reading.next();
  assert.equal(memory.take('', 1000), true);
  memory.give('', 1000);
  const third = open();
  third.receive(1000);
  third.stream.abandon();
  assert.equal(memory.take('', 1000), true);
});
