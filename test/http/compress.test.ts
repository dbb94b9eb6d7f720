import assert from 'node:assert/strict';
import http from 'node:http';
import test from 'node:test';
import { gunzipSync } from 'node:zlib';
import { READ_CONDITION } from '#src/contract/wire/operations/parts.ts';
import { acceptsGzip, compress, MIN_COMPRESSED_BYTES } from '#src/http/reply/compress.ts';
import { unlessKnown } from '#src/http/reply/entity-tag.ts';
import { defer, ok, type Reply, raw, sharedDocument } from '#src/http/reply/reply.ts';
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
  defineRoute({
    method: 'GET',
    path: '/tagged',
    operationId: 'getTagged',
    summary: 's',
    tags: [],
    access: { action: 'thing.use' },
    headers: READ_CONDITION,
    responses: { 200: { description: 'd' }, 304: { description: 'd' } },
    handle: ({ headers }) => unlessKnown(ok({ text: TEXT }), '"v1"', headers),
  }),
];

interface Received {
  readonly status: number | undefined;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

function get(
  server: Server,
  path: string,
  encoding: string | undefined,
  method = 'GET',
  more: Readonly<Record<string, string>> = {},
) {
  const headers = { ...GOOD, ...more, ...(encoding === undefined ? {} : { 'accept-encoding': encoding }) };
  return new Promise<Received>((resolve, reject) => {
    const { host, port } = server;
    http
      .request({ host, port, path, method, headers, agent: false }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode,
            headers: response.headers,
            body: Buffer.concat(chunks),
          }),
        );
      })
      .on('error', reject)
      .end();
  });
}

test('a large answer is compressed only for callers that accept gzip', async (t) => {
  const server = await serve(t, routes);
  for (const path of ['/now', '/later', '/deferred']) {
    const plain = await get(server, path, undefined);
    assert.deepEqual([plain.headers['content-encoding'], plain.headers.vary], [undefined, 'accept-encoding']);
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

test('small, already compressed and ranged answers are sent unchanged', async (t) => {
  const server = await serve(t, routes);
  for (const path of ['/small', '/image', '/ranged']) {
    const { headers } = await get(server, path, 'gzip');
    assert.equal(headers['content-encoding'], undefined, path);
  }
});

test('HEAD returns the same length, encoding and tag as GET', async (t) => {
  const server = await serve(t, routes);
  for (const encoding of [undefined, 'gzip'])
    for (const path of ['/now', '/small', '/tagged']) {
      const [got, head] = [await get(server, path, encoding), await get(server, path, encoding, 'HEAD')];
      assert.equal(head.body.length, 0);
      for (const name of ['content-length', 'content-encoding', 'etag', 'vary'])
        assert.equal(head.headers[name], got.headers[name], `${path} ${name}`);
    }
});

test('only answers that may be compressed have Vary: Accept-Encoding', async (t) => {
  const server = await serve(t, routes);
  for (const encoding of [undefined, 'br', 'gzip']) {
    const varyOf = async (path: string, more = {}) =>
      (await get(server, path, encoding, 'GET', more)).headers.vary;
    for (const path of ['/now', '/small', '/tagged', '/nothing'])
      assert.equal(await varyOf(path), 'accept-encoding', path);
    assert.equal(await varyOf('/tagged', { 'if-none-match': '"v1"' }), 'accept-encoding');
    for (const path of ['/image', '/ranged']) assert.equal(await varyOf(path), undefined, path);
  }
});

test('a compressed answer has its own tag, and a 304 has the tag that the caller sent', async (t) => {
  const server = await serve(t, routes);
  const tagFor = async (encoding: string | undefined) =>
    (await get(server, '/tagged', encoding)).headers.etag;
  assert.deepEqual([await tagFor(undefined), await tagFor('gzip')], ['"v1"', '"v1-gzip"']);
  for (const encoding of [undefined, 'gzip'])
    for (const tag of ['"v1"', '"v1-gzip"']) {
      const { status, headers } = await get(server, '/tagged', encoding, 'GET', {
        'if-none-match': `"v0", ${tag}`,
      });
      assert.deepEqual([status, headers.etag], [304, tag]);
    }
});

test('a client that leaves while its answer is compressed affects no other client', async (t) => {
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

test('at most one large answer of a workspace, and two in all, are compressed at once, so that threads stay free', async () => {
  const large = raw('application/json', JSON.stringify(TEXT.repeat(5)));
  const encodingOf = async (workspaceId: string, reply = large) =>
    (await compress(reply, workspaceId)).headers?.['content-encoding'];
  const owners = ['a', 'a', 'b', 'a', 'c'];
  const first = await Promise.all(owners.map((owner) => encodingOf(owner)));
  assert.deepEqual(first, ['gzip', undefined, 'gzip', undefined, undefined]);
  assert.equal(await encodingOf('c'), 'gzip', 'the places are free again');
  const small = raw('application/json', JSON.stringify(TEXT.slice(0, MIN_COMPRESSED_BYTES)));
  const waited = await Promise.all(Array.from({ length: 20 }, () => encodingOf('a', small)));
  assert.deepEqual(new Set(waited), new Set(['gzip']), 'small answers wait for their turn');
});

test('a document that many clients are sent is compressed once', async () => {
  const document = sharedDocument('text/javascript', Buffer.from(TEXT), {});
  const sent = await Promise.all([compress(document), compress(document)]);
  const [first, second] = [...sent, await compress(document)].map(({ bytes }) => bytes);
  assert.ok(gunzipSync(first as Uint8Array).equals(Buffer.from(TEXT)));
  assert.equal(first, second);
  assert.equal(first, (await compress(document)).bytes);
});
