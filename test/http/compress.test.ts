import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { gunzipSync } from 'node:zlib';
import { acceptsGzip, MIN_COMPRESSED_BYTES } from '#src/http/reply/compress.ts';
import { defer, ok, type Reply, raw } from '#src/http/reply/reply.ts';
import { defineRoute, type Route } from '#src/http/route.ts';
import type { Server } from '#src/http/server.ts';
import { GOOD, serve } from './test-server.ts';

const TEXT = 'a cell and its output, '.repeat(30_000);
const route = (path: string, handle: () => Reply | Promise<Reply>): Route =>
  defineRoute({
    method: 'GET',
    path,
    operationId: `get${path.slice(1)}`,
    summary: 's',
    tags: [],
    access: { action: 'thing.use' },
    responses: { 200: { description: 'd' } },
    handle,
  });
const routes = [
  route('/now', () => ok({ text: TEXT })),
  route('/later', () => Promise.resolve(ok({ text: TEXT }))),
  route('/small', () => ok({ text: 'x'.repeat(MIN_COMPRESSED_BYTES - 20) })),
  route('/image', () => raw('image/png', Buffer.from(TEXT))),
  route('/ranged', () => raw('text/plain', Buffer.from(TEXT), { 'accept-ranges': 'bytes' })),
  route('/deferred', () => defer(Promise.resolve({ text: TEXT }), () => ({ text: '' }))),
];

function get(server: Server, path: string, encoding: string | undefined, method = 'GET') {
  const headers = { ...GOOD, ...(encoding === undefined ? {} : { 'accept-encoding': encoding }) };
  return new Promise<{ headers: http.IncomingHttpHeaders; body: Buffer }>((resolve, reject) => {
    const { host, port } = server;
    http
      .request({ host, port, path, method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => resolve({ headers: response.headers, body: Buffer.concat(chunks) }));
      })
      .on('error', reject)
      .end();
  });
}

test('a large answer is compressed for a caller who asks for gzip, and for nobody else', async (t) => {
  const server = await serve(t, routes);
  for (const path of ['/now', '/later', '/deferred']) {
    const plain = await get(server, path, undefined);
    assert.deepEqual([plain.headers['content-encoding'], plain.headers.vary], [undefined, undefined]);
    const small = await get(server, path, 'gzip, deflate, br');
    assert.deepEqual(
      [small.headers['content-encoding'], small.headers.vary],
      ['gzip', 'accept-encoding'],
      path,
    );
    assert.equal(small.headers['content-type'], 'application/json');
    assert.equal(Number(small.headers['content-length']), small.body.length);
    assert.ok(small.body.length < plain.body.length / 10);
    assert.ok(gunzipSync(small.body).equals(plain.body), path);
    const refused = await get(server, path, 'gzip;q=0, br');
    assert.equal(refused.headers['content-encoding'], undefined);
  }
});

test('what is small, compressed already or asked for in ranges is sent as it is, and HEAD says its length', async (t) => {
  const server = await serve(t, routes);
  for (const path of ['/small', '/image', '/ranged']) {
    const { headers } = await get(server, path, 'gzip');
    assert.equal(headers['content-encoding'], undefined, path);
  }
  const head = await get(server, '/now', 'gzip', 'HEAD');
  assert.deepEqual([head.headers['content-encoding'], head.body.length], [undefined, 0]);
  assert.equal(head.headers['content-length'], String(JSON.stringify({ text: TEXT }).length));
});

test('a client that leaves while its answer is compressed disturbs nobody', async (t) => {
  const server = await serve(t, routes);
  const { host, port } = server;
  await Promise.all(
    Array.from({ length: 20 }, () => {
      const request = http.request({
        host,
        port,
        path: '/now',
        headers: { ...GOOD, 'accept-encoding': 'gzip' },
      });
      request.on('error', () => {}).end();
      return new Promise((resolve) => request.once('finish', () => resolve(request.destroy())));
    }),
  );
  assert.ok((await get(server, '/now', 'gzip')).body.length > 0);
  assert.deepEqual(server.logged, []);
});

test('an Accept-Encoding header is read as RFC 9110 says', () => {
  const yes = [
    'gzip',
    'GZIP;q=0.5',
    'br, gzip',
    'x-gzip',
    '*',
    'identity;q=0, *;q=0.1',
    'deflate , gzip ; q=1',
  ];
  const no = ['', 'br', 'gzip;q=0', 'gzip; q=0.000', '*;q=0', 'gzip;q=0, *', 'gzipped', 'identity'];
  assert.deepEqual([yes.filter((one) => !acceptsGzip(one)), no.filter(acceptsGzip)], [[], []]);
});
