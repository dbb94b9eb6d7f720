/** How much memory the bodies of requests may take together. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import test, { type TestContext } from 'node:test';
import Type from 'typebox';
import type { WorkspaceId } from '#src/base/ids.ts';
import { BodyMemory, MAX_BODY_MEMORY_BYTES } from '#src/http/edge/body-memory.ts';
import { ok } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
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
  const server = await serve(t, [defineRoute({ ...route, path: '/things', operationId: 'a' })], {
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
  assert.match(refused.text, /Too many large request bodies of this workspace/);
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

test('a body keeps its room until its request is answered', async (t) => {
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

test('the bodies of a workspace have half of the memory that those of others leave, to the byte', () => {
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
