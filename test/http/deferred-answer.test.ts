import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import { defer, json, ok, type PlainReply, type Reply, waiting } from '#src/http/reply/reply.ts';
import { type AnyRouteRequest, defineRoute } from '#src/http/route.ts';
import type { Server, ServerOptions } from '#src/http/server.ts';
import { deferred } from '#test/support/deferred.ts';
import { bounded } from '#test/support/processes.ts';
import { RawConnection, send, serve } from './test-server.ts';

const BEAT = '1\r\n \r\n';
const REQUEST = `POST /late HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nservice-workspace-id: ws_1\r\n\r\n`;

/** A server that sends a heartbeat every 20 ms while an answer is deferred. */
function serveLate(
  t: TestContext,
  handle: (exchange: AnyRouteRequest) => Reply | Promise<Reply>,
  ports: Partial<ServerOptions> = {},
) {
  const route = defineRoute({
    method: 'POST',
    path: '/late',
    operationId: 'late',
    summary: 's',
    tags: ['Things'],
    access: { action: 'thing.use' },
    responses: { 200: { description: 'd' } },
    handle,
  });
  return serve(t, [route], { heartbeatMs: 20, ...ports });
}

const failed = ({ code, message }: AppError) => ({ success: false, why: `${code}: ${message}` });
const beats = (text: string) => text.split(BEAT).length - 1;
/** Returns the body after the head, with its chunks joined. */
function bodyOf(text: string): string {
  return text.slice(text.indexOf('\r\n\r\n') + 4).replace(/[0-9a-f]+\r\n([\s\S]*?)\r\n/g, '$1');
}

/** Asks, and resolves when the head of the answer and a heartbeat have arrived. */
async function askLate(server: Server, headers = '') {
  const connection = new RawConnection(server);
  connection.write(REQUEST.replace(/\r\n$/, `${headers}\r\n`));
  await connection.until((text) => beats(text) > 0);
  const body = async () => {
    await connection.until((text) => text.endsWith('\r\n0\r\n\r\n'));
    connection.leave();
    return Buffer.from(bodyOf(connection.text), 'latin1').toString();
  };
  return { connection, body };
}

test('an answer that is fast enough is like any other answer', async (t) => {
  const server = await serveLate(t, () => defer(Promise.resolve({ success: true }), failed), {
    heartbeatMs: 60_000,
  });
  const answer = await send(server, '/late', { method: 'POST' });
  assert.deepEqual([answer.status, answer.text], [200, '{"success":true}']);
  assert.equal(answer.headers['content-length'], '16');
});

test('a late answer begins with its head and white space, and ends with JSON', async (t) => {
  const value = deferred<unknown>();
  const server = await serveLate(t, () => defer(value.promise, failed));
  const connection = new RawConnection(server);
  connection.write(REQUEST);
  await connection.until((text) => beats(text) >= 3);
  assert.match(connection.text, /^HTTP\/1.1 200 OK\r\n/);
  assert.match(connection.text, /\r\ncontent-type: application\/json\r\n/i);
  assert.match(connection.text, /\r\nx-accel-buffering: no\r\n/i);
  value.resolve({ success: true });
  await connection.until((text) => text.endsWith('0\r\n\r\n'));
  assert.deepEqual(JSON.parse(bodyOf(connection.text)), { success: true });
  // the connection can be used again
  const before = connection.text.length;
  connection.write(REQUEST);
  await connection.until((text) => text.length > before);
  assert.match(connection.text.slice(before), /^HTTP\/1.1 200 OK\r\n/);
  connection.leave();
});

test('a late answer of any size arrives whole', async (t) => {
  const value = deferred<unknown>();
  const server = await serveLate(t, () => defer(value.promise, failed));
  const text = 'All the world’s a stage. '.repeat(100_000);
  const late = await askLate(server);
  value.resolve({ text });
  assert.deepEqual(JSON.parse(await late.body()), { text });
});

test('a request that is refused keeps its status', async (t) => {
  const server = await serveLate(t, () => {
    throw new AppError('session_busy', 'Later.');
  });
  const answer = await send(server, '/late', { method: 'POST' });
  assert.deepEqual([answer.status, answer.code], [409, 'session_busy']);
});

test('a failure before the head has its own status, and a failure after it is in the body', async (t) => {
  const value = deferred<unknown>();
  let isPatient = false;
  const server = await serveLate(t, () => {
    if (isPatient) return defer(value.promise, failed);
    return defer(Promise.reject(new Error('secret')), failed);
  });
  const early = await send(server, '/late', { method: 'POST' });
  assert.deepEqual([early.status, early.code], [500, 'internal']);
  isPatient = true;
  const late = await askLate(server, 'x-request-id: mine\r\n');
  value.reject(new Error('secret'));
  const body = await late.body();
  assert.match(late.connection.text, /^HTTP\/1.1 200 OK\r\n/);
  assert.deepEqual(JSON.parse(body), {
    success: false,
    why: 'internal: Quote the request id mine when you report this.',
  });
  assert.match(body, /^ +\{/);
  assert.deepEqual(
    server.logged.map(({ fields }) => (fields.err as Error).message),
    ['secret', 'secret'],
  );
});

test('a failure to store or encode a late answer is reported in the body', async (t) => {
  let durable: Promise<void> = Promise.reject(new Error('disk full'));
  durable.catch(() => {});
  const values = [{ success: true }, { big: 1n }];
  const server = await serveLate(
    t,
    // The heartbeat, whose timer is due earlier, always comes before the value.
    () => defer(new Promise((resolve) => setTimeout(() => resolve(values.shift()), 50)), failed),
    { durable: () => durable },
  );
  for (const _ of [1, 2]) {
    const { status, json } = await send(server, '/late', { method: 'POST' });
    assert.deepEqual([status, (json as { success: boolean }).success], [200, false]);
    durable = Promise.resolve();
  }
});

test('when a waiting client leaves, the server notices and writes nothing more', async (t) => {
  const value = deferred<unknown>();
  const left = deferred();
  const server = await serveLate(t, ({ signal }) => {
    signal.addEventListener('abort', () => left.resolve());
    return defer(value.promise, failed);
  });
  const connection = new RawConnection(server);
  connection.write(REQUEST);
  await connection.until((text) => beats(text) > 0);
  connection.leave();
  await left.promise;
  value.resolve({ success: true });
  assert.equal((await send(server, '/late', { method: 'POST' })).status, 200);
  assert.deepEqual(server.logged, []);
});

test('a late answer to a chunked body is whole, and its connection ends after it', async (t) => {
  const value = deferred<unknown>();
  const server = await serveLate(t, () => defer(value.promise, failed));
  const connection = new RawConnection(server);
  connection.write(REQUEST.replace('\r\n\r\n', '\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'));
  setTimeout(() => value.resolve({ success: true }), 100); // otherwise the answers would have sent heartbeats by now
  await connection.closed;
  assert.match(connection.text, /^HTTP\/1.1 200 OK\r\n/);
  assert.match(connection.text, /\r\nconnection: close\r\n/i);
  assert.ok(connection.text.endsWith('\r\n\r\n{"success":true}'));
});

test('a request that waits sends nothing early, and its 202 is stored with the idempotency key at once', async (t) => {
  const value = deferred<PlainReply>();
  const stored: string[] = [];
  const later = deferred<unknown>();
  let isDeferred = false;
  const handle = () =>
    isDeferred
      ? defer(later.promise, failed)
      : waiting(
          json(202, { run: 1 }),
          value.promise.then((reply) => () => reply),
        );
  const server = await serveLate(t, handle, {
    idempotency: {
      begin: () => ({
        kind: 'proceed',
        complete: ({ status, bytes }) => stored.push(`${status} ${Buffer.from(bytes)}`),
        abandon: () => stored.push('abandoned'),
      }),
    },
  });
  const connection = new RawConnection(server);
  connection.write(REQUEST.replace('host: x', 'host: x\r\nidempotency-key: k'));
  await send(server, '/nothing'); // a whole exchange later
  assert.deepEqual(stored, ['202 {"run":1}']);
  // A deferred reply that was asked for later has sent white space.
  isDeferred = true;
  const late = await askLate(server);
  assert.equal(connection.text, '');
  later.resolve({});
  await late.body();
  value.resolve(ok({ run: 1, status: 'completed' }));
  await connection.until((text) => text.endsWith('"completed"}'));
  assert.match(connection.text, /^HTTP\/1.1 200 OK\r\n/);
  assert.deepEqual(stored, ['202 {"run":1}']);
  connection.leave();
});

test('a waiting reply is released when its client leaves', async (t) => {
  const left = deferred();
  const begun = deferred();
  const server = await serveLate(t, ({ signal }) => {
    begun.resolve();
    const read = new Promise<() => PlainReply>((resolve) => {
      signal.addEventListener('abort', () => resolve(() => ok({})));
    });
    return waiting(ok({}), read.finally(left.resolve));
  });
  const connection = new RawConnection(server);
  connection.write(REQUEST);
  await begun.promise;
  connection.leave();
  await left.promise;
  await bounded('the server closes', server.close(3_600_000), () => 'something is still in flight');
  assert.deepEqual(server.logged, []);
});
