/** How much memory large answers may take until they are read. */
import assert from 'node:assert/strict';
import net from 'node:net';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ANSWERS_OF_WORKSPACE, MAX_WAITING_ANSWERS } from '#src/http/edge/answer-places.ts';
import { BodyMemory, MAX_BODY_MEMORY_BYTES } from '#src/http/edge/body-memory.ts';
import { defer, ok, type Reply, raw, waiting } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import { deferred } from '#test/support/deferred.ts';
import { eventually } from '#test/support/processes.ts';
import { auth, principal, send, serve, type TestServer } from './test-server.ts';
import { docs, use } from './thing-routes.ts';

/** More than the system keeps for a connection whose client does not read. */
const LARGE = Buffer.alloc(16 * 1024 * 1024, 'All the world’s a stage. ');
const MOST = MAX_BODY_MEMORY_BYTES / 2 / LARGE.byteLength;

/** A server that knows every workspace. */
function serveAnswers(
  t: TestContext,
  answers: Readonly<Record<string, () => Reply | Promise<Reply>>>,
  durable?: () => Promise<void>,
) {
  const routes = Object.entries(answers).map(([name, handle]): Route => {
    const [method = 'GET', path = ''] = name.split(' ');
    const responses = { 200: { description: 'd', contentType: '*/*' } };
    return defineRoute({
      ...docs,
      method: method as 'GET' | 'POST',
      path,
      operationId: name,
      access: use,
      responses,
      largeAnswer: path.startsWith('/made'),
      handle,
    });
  });
  return serve(t, routes, {
    heartbeatMs: 10,
    ...(durable && { durable }),
    auth: {
      ...auth,
      authenticate: (_, workspaceHeader) => ({ ...principal, workspaceId: workspaceHeader as WorkspaceId }),
    },
  });
}

const headersOf = (workspaceId: string) => ({
  authorization: 'Bearer good',
  'service-workspace-id': workspaceId,
});
const get = (server: TestServer, path: string, workspaceId: string) =>
  send(server, path, { headers: headersOf(workspaceId) });

/** Sends requests whose answers nobody reads. */
function stall(t: TestContext, server: TestServer, request: string, count = MOST): net.Socket[] {
  return Array.from({ length: count }, () => {
    const socket = net.connect(server.port, server.host).on('error', () => {});
    socket.pause();
    const head = `host: x\r\nauthorization: Bearer good\r\nservice-workspace-id: busy\r\n`;
    const [line = '', more = '', body = ''] = request.split('|');
    socket.write(`${line} HTTP/1.1\r\n${head}${more}\r\n${body}`);
    t.after(() => socket.destroy());
    return socket;
  });
}

/** Resolves when this many answers are being sent, and a further one is refused. */
async function becomesFull(server: TestServer, path: string, count = MOST): Promise<void> {
  await eventually('the answers are being sent', () => {
    const sent = [...server.open.inFlight].filter(({ phase }) => phase.name === 'sending');
    return sent.length === count;
  });
  await eventually('a further large answer has no room', async () => {
    const { status } = await get(server, path, 'busy');
    return status === 503;
  });
}

test('unread answers of one workspace leave room for answers of other workspaces, and for small answers', async (t) => {
  const server = await serveAnswers(t, {
    'GET /large': () => raw('image/png', LARGE),
    'GET /small': () => ok({}),
  });
  const readers = stall(t, server, 'GET /large');
  await becomesFull(server, '/large');
  const refused = await get(server, '/large', 'busy');
  assert.deepEqual([refused.status, refused.code, refused.headers['retry-after']], [503, 'unavailable', '1']);
  assert.match(refused.text, /Too many large answers of this workspace are being read. Ask again/);
  assert.equal((await get(server, '/small', 'busy')).status, 200);
  assert.equal((await get(server, '/large', 'quiet')).status, 200);
  for (const reader of readers) reader.destroy();
  await eventually('the room of answers whose clients have left is free', async () => {
    const { status } = await get(server, '/large', 'busy');
    return status === 200;
  });
});

test('the memory of an answer is free again after its client has read the answer', async (t) => {
  const server = await serveAnswers(t, { 'GET /large': () => raw('image/png', LARGE) });
  for (let i = 0; i < 2 * MOST; i++) assert.equal((await get(server, '/large', 'busy')).status, 200);
});

test('an answer with a part of a large document is charged for the whole document', async (t) => {
  const server = await serveAnswers(t, {
    'GET /part': () => raw('image/png', LARGE.subarray(0, 12 * 1024 * 1024)),
  });
  stall(t, server, 'GET /part');
  await becomesFull(server, '/part');
});

test('an answer that ends its connection is also charged until its client has read it', async (t) => {
  const server = await serveAnswers(t, {
    'GET /large': () => raw('image/png', LARGE),
    'POST /large': () => raw('image/png', LARGE),
  });
  const whole = net.connect(server.port, server.host);
  whole.write(
    'POST /large HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nservice-workspace-id: quiet\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
  );
  let bytes = 0;
  let head = '';
  await new Promise<void>((resolve) => {
    whole.on('data', (data) => {
      if (head === '') head = data.toString('latin1').split('\r\n\r\n', 1)[0]!;
      bytes += data.byteLength;
      if (bytes === head.length + 4 + LARGE.byteLength) resolve();
    });
  });
  whole.destroy();
  assert.match(head, /^connection: close\r?$/im);
  stall(t, server, 'POST /large|transfer-encoding: chunked\r\n|0\r\n\r\n');
  await becomesFull(server, '/large');
});

test('an answer that began as white space is charged until its client has read it', async (t) => {
  const value = deferred<unknown>();
  const text = 'x'.repeat(LARGE.byteLength - 1024); // with the rest of its JSON as much
  const server = await serveAnswers(t, {
    'GET /late': () => defer(value.promise, ({ code }) => ({ failed: code })),
    'GET /large': () => raw('image/png', LARGE),
  });
  const readers = stall(t, server, 'GET /late');
  await eventually('all have begun', () => readers.every(({ bytesWritten }) => bytesWritten > 0));
  const beaten = stall(t, server, 'GET /late', 1)[0]!;
  await new Promise<void>((resolve) => {
    beaten.once('data', () => resolve());
    beaten.resume();
  });
  beaten.destroy();
  value.resolve({ text });
  await becomesFull(server, '/large');
  const refused = await get(server, '/late', 'busy');
  assert.match(refused.text, /unavailable/); // with its status, or after white space
});

test('files that are being sent have bounded memory and descriptors, however slow the readers are', async (t) => {
  let open = 0;
  const server = await serveAnswers(t, {
    'GET /large': () => raw('image/png', LARGE),
    'GET /file': async () => {
      open++;
      return {
        kind: 'file',
        status: 200,
        contentType: 'image/png',
        sizeBytes: LARGE.byteLength,
        read: async (offset, length) => LARGE.subarray(offset, offset + length),
        close: async () => void open--,
      };
    },
  });
  const readers = stall(t, server, 'GET /large');
  await becomesFull(server, '/large');
  readers.pop()?.destroy(); // which leaves room for 64 files
  await eventually('the room of one answer is free', async () => {
    const { status } = await get(server, '/file', 'busy');
    return status === 200;
  });
  readers.push(...stall(t, server, 'GET /file', 80));
  await becomesFull(server, '/file', MOST - 1 + 64);
  await eventually('64 files are open, and no more', () => open === 64);
  assert.equal((await get(server, '/file', 'quiet')).status, 200);
  for (const reader of readers) reader.destroy();
  await eventually('all files are closed', () => open === 0);
  assert.equal((await get(server, '/file', 'busy')).status, 200);
});

test('the refusal of an answer without room says that the request was carried out', async (t) => {
  const server = await serveAnswers(t, {
    'GET /large': () => raw('image/png', LARGE),
    'POST /large': () => raw('image/png', LARGE),
  });
  stall(t, server, 'GET /large');
  await becomesFull(server, '/large');
  const answer = await send(server, '/large', { method: 'POST', headers: headersOf('busy') });
  assert.equal(answer.status, 503);
  assert.match(
    answer.text,
    /The request was carried out\. You can repeat a POST with the same Idempotency-Key/,
  );
});

test('one answer of any size has room in a workspace without other unread answers', () => {
  const memory = new BodyMemory({ alwaysTakesOne: true });
  assert.equal(memory.take('a', 2 * MAX_BODY_MEMORY_BYTES), true);
  assert.equal(memory.take('a', 1), false);
  memory.give('a', 2 * MAX_BODY_MEMORY_BYTES);
  assert.equal(memory.take('b', MAX_BODY_MEMORY_BYTES / 2), true);
  assert.equal(memory.take('b', 1), false);
});

/** Answers that are being made until the test lets them go on. */
function makeAnswers() {
  const made = deferred();
  const count = { begun: 0, making: 0, most: 0 };
  const make = async () => {
    count.begun++;
    count.most = Math.max(count.most, ++count.making);
    await made.promise;
    count.making--;
    return raw('image/png', LARGE.subarray(0, 1024));
  };
  return { make, count, go: () => made.resolve() };
}

/** Begins as many large answers as a workspace has places for. */
async function takePlaces(server: TestServer, count: { readonly making: number }) {
  const answers = Array.from({ length: ANSWERS_OF_WORKSPACE }, () => get(server, '/made', 'busy'));
  await eventually('the places are taken', () => count.making === ANSWERS_OF_WORKSPACE);
  return answers;
}

test('few large answers of a workspace are made at once, and large answers of other workspaces meanwhile', async (t) => {
  const { make, count, go } = makeAnswers();
  const server = await serveAnswers(t, { 'GET /made': make, 'GET /small': () => ok({}) });
  const answers = await takePlaces(server, count);
  const more = stall(t, server, 'GET /made', 20);
  answers.push(...Array.from({ length: 40 }, () => get(server, '/made', 'busy')));
  await eventually('all have come', () => server.open.inFlight.size === answers.length + more.length);
  assert.equal((await get(server, '/small', 'busy')).status, 200);
  assert.equal((await get(server, '/small', 'quiet')).status, 200);
  const other = get(server, '/made', 'quiet');
  await eventually('another workspace makes one', () => count.making === ANSWERS_OF_WORKSPACE + 1);
  assert.equal(count.begun, count.making);
  for (const reader of more) reader.destroy();
  await eventually('those that left wait no longer', () => server.open.inFlight.size === answers.length + 1);
  go();
  for (const { status } of await Promise.all([...answers, other])) assert.equal(status, 200);
  assert.deepEqual(
    [count.begun, count.most, count.making],
    [answers.length + 1, ANSWERS_OF_WORKSPACE + 1, 0],
  );
});

test('an answer gives its place back when it cannot be made or its client has left', async (t) => {
  const { make, count, go } = makeAnswers();
  let isBroken = true;
  const server = await serveAnswers(t, {
    'GET /made': make,
    'GET /made-badly': async () => {
      if (isBroken) throw new AppError('not_found', 'It is gone.');
      return ok({});
    },
  });
  for (let i = 0; i < 2 * ANSWERS_OF_WORKSPACE; i++)
    assert.equal((await get(server, '/made-badly', 'busy')).status, 404);
  const readers = stall(t, server, 'GET /made', ANSWERS_OF_WORKSPACE);
  await eventually('the places are taken', () => count.making === ANSWERS_OF_WORKSPACE);
  for (const reader of readers) reader.destroy();
  go();
  isBroken = false;
  assert.equal((await get(server, '/made-badly', 'busy')).status, 200);
  assert.equal((await get(server, '/made', 'busy')).status, 200);
});

test('the JSON of a large value waits for a place, except in a reply that has waited for a run', async (t) => {
  const { make, count, go } = makeAnswers();
  const server = await serveAnswers(t, {
    'GET /made': make,
    'GET /value': () => ok({ text: 'x'.repeat(1024 * 1024) }),
    'GET /late': () =>
      waiting(
        ok({}),
        Promise.resolve(() => ok({})),
      ),
  });
  const answers = await takePlaces(server, count);
  let isAnswered = false;
  const later = get(server, '/value', 'busy').then(({ status }) => {
    isAnswered = true;
    return status;
  });
  await eventually('it has come', () => server.open.inFlight.size === answers.length + 1);
  assert.equal((await get(server, '/late', 'busy')).status, 200);
  assert.equal((await get(server, '/value', 'quiet')).status, 200);
  assert.equal(isAnswered, false);
  go();
  assert.equal(await later, 200);
  await Promise.all(answers);
});

test('the number of large answers of a workspace that wait for a place has a limit, and one more answer is refused', async (t) => {
  const { make, count, go } = makeAnswers();
  const server = await serveAnswers(t, { 'GET /made': make });
  const answers = await takePlaces(server, count);
  answers.push(...Array.from({ length: MAX_WAITING_ANSWERS }, () => get(server, '/made', 'busy')));
  await eventually('all have come', () => server.open.inFlight.size === answers.length);
  const refused = await get(server, '/made', 'busy');
  assert.deepEqual([refused.status, refused.headers['retry-after']], [503, '1']);
  assert.match(refused.text, /Too many large answers of this workspace/);
  go();
  for (const { status } of await Promise.all(answers)) assert.equal(status, 200);
});

test('an answer whose commit waits for the disk holds no place', async (t) => {
  const committed = deferred();
  const server = await serveAnswers(
    t,
    {
      'GET /made': async () => raw('image/png', LARGE.subarray(0, 1024)),
      'POST /made': async () => raw('image/png', LARGE.subarray(0, 1024 * 1024)),
    },
    () => committed.promise,
  );
  const headers = headersOf('busy');
  const changes = Array.from({ length: ANSWERS_OF_WORKSPACE }, () =>
    send(server, '/made', { method: 'POST', headers }),
  );
  await eventually('all have come', () => server.open.inFlight.size === changes.length);
  assert.equal((await get(server, '/made', 'busy')).status, 200);
  committed.resolve();
  for (const { status } of await Promise.all(changes)) assert.equal(status, 200);
});

test('of many clients that wait for one run, each reads the run after the answer to the previous client is charged', async (t) => {
  const ended = deferred();
  const sentBefore: number[] = [];
  const server = await serveAnswers(t, {
    'GET /late': () =>
      waiting(
        ok({}),
        ended.promise.then(() => () => {
          sentBefore.push([...server.open.inFlight].filter(({ phase }) => phase.name === 'sending').length);
          return raw('image/png', LARGE);
        }),
      ),
  });
  const readers = stall(t, server, 'GET /late', MOST);
  await eventually('all have come', () => server.open.inFlight.size === readers.length);
  ended.resolve();
  await eventually('all have read', () => sentBefore.length === readers.length);
  assert.deepEqual(
    sentBefore,
    Array.from({ length: MOST }, (_, at) => at),
  );
});
