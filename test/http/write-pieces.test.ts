import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import http from 'node:http';
import net from 'node:net';
import test from 'node:test';
import { ok, type Reply, raw } from '#src/http/reply/reply.ts';
import { MAX_WHOLE_BODY_BYTES } from '#src/http/reply/write-reply.ts';
import { defineRoute } from '#src/http/route.ts';
import type { Server } from '#src/http/server.ts';
import { bounded } from '#test/support/processes.ts';
import { GOOD, send, serve } from './test-server.ts';

const BIG = Buffer.alloc(8 * 1024 * 1024, 'All the world’s a stage. ');
/** How long a server may wait for open requests when it closes: so long that a test which had to wait for it would fail. */
const MUCH_TOO_LONG_MS = 3_600_000;
const REQUEST = `GET /big HTTP/1.1\r\nhost: x\r\nauthorization: Bearer good\r\nservice-workspace-id: ws_1\r\n\r\n`;

const route = (path: string, handle: () => Reply | Promise<Reply>) =>
  defineRoute({
    method: 'GET',
    path,
    operationId: path,
    summary: 's',
    tags: ['Things'],
    access: { action: 'thing.use' },
    responses: { 200: { description: 'd', contentType: '*/*' } },
    handle,
  });

function hashOf(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** The length and the hash of an answer's body. */
function fetchBody(server: Server, path: string, agent: http.Agent | false = false) {
  return new Promise<{ length: number; hash: string; announced: string | undefined }>((resolve, reject) => {
    const request = http.get(
      { host: server.host, port: server.port, path, headers: GOOD, agent },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const body = Buffer.concat(chunks);
          resolve({ length: body.length, hash: hashOf(body), announced: response.headers['content-length'] });
        });
      },
    );
    request.on('error', reject);
  });
}

/** A connection that has requested the big answer and reads it only when the test says so. */
function stalledReader(server: Server): net.Socket {
  const socket = net.connect(server.port, server.host);
  socket.pause();
  socket.write(REQUEST);
  return socket;
}

test('a body of any size arrives whole, and the connection stays usable', async (t) => {
  const sizes = [MAX_WHOLE_BODY_BYTES - 1, MAX_WHOLE_BODY_BYTES, MAX_WHOLE_BODY_BYTES + 1, BIG.length];
  const bodies = sizes.map((size) => BIG.subarray(0, size));
  const server = await serve(t, [
    ...bodies.map((body, i) => route(`/now/${i}`, () => raw('text/plain', body))),
    ...bodies.map((body, i) => route(`/later/${i}`, async () => raw('text/plain', body))),
    route('/text', () => raw('text/plain', 'ü'.repeat(300_000))),
  ]);
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  for (const path of ['now', 'later']) {
    for (const [i, body] of bodies.entries()) {
      const expected = { length: body.length, hash: hashOf(body), announced: String(body.length) };
      assert.deepEqual(await fetchBody(server, `/${path}/${i}`, agent), expected);
    }
  }
  const text = 'ü'.repeat(300_000);
  assert.deepEqual(await fetchBody(server, '/text', agent), {
    length: 600_000,
    hash: hashOf(text),
    announced: '600000',
  });
});

test('a stalled reader delays nobody, and gets the rest when it continues', async (t) => {
  const server = await serve(t, [route('/big', () => raw('text/plain', BIG)), route('/small', () => ok({}))]);
  const readers = [1, 2, 3, 4].map(() => stalledReader(server));
  assert.deepEqual((await send(server, '/small')).json, {});
  assert.equal((await fetchBody(server, '/big')).length, BIG.length);
  for (const reader of readers) {
    const chunks: Buffer[] = [];
    let size = 0;
    await new Promise<void>((resolve, reject) => {
      reader.on('error', reject);
      reader.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size >= BIG.length + Buffer.concat(chunks.slice(0, 1)).indexOf('\r\n\r\n') + 4) resolve();
      });
      reader.resume();
    });
    const answer = Buffer.concat(chunks);
    assert.equal(hashOf(answer.subarray(answer.indexOf('\r\n\r\n') + 4)), hashOf(BIG));
    reader.destroy();
  }
});

test('after a reader leaves in the middle, the server can close', async (t) => {
  const server = await serve(t, [route('/big', () => raw('text/plain', BIG))]);
  const reader = stalledReader(server);
  await new Promise<void>((resolve) => {
    reader.once('data', () => resolve());
    reader.resume();
  });
  reader.destroy();
  assert.equal((await fetchBody(server, '/big')).length, BIG.length);
  await bounded(
    'the server closes',
    server.close(MUCH_TOO_LONG_MS),
    () => 'it waits for a body that nobody reads',
  );
});

test('HEAD of a large body has its length and no body', async (t) => {
  const server = await serve(t, [route('/big', () => raw('text/plain', BIG))]);
  const { status, headers, text } = await send(server, '/big', { method: 'HEAD' });
  assert.deepEqual([status, headers['content-length'], text], [200, String(BIG.length), '']);
});
