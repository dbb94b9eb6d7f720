import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import test, { type TestContext } from 'node:test';
import {
  compareReleases,
  decodeRelease,
  type FrameFields,
  readFirstLine,
  readLines,
} from '#src/confined/nodes/protocol.ts';

/** Returns both ends of a connection. */
async function pair(t: TestContext): Promise<[Socket, Socket]> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect(port, '127.0.0.1');
  const [other] = (await once(server, 'connection')) as [Socket];
  for (const socket of [client, other]) socket.on('error', () => undefined);
  t.after(() => {
    for (const socket of [client, other]) socket.destroy();
    server.close();
  });
  return [client, other];
}

test('the bytes after the first line are not lost', async (t) => {
  const [client, other] = await pair(t);
  client.write('{"op":"kernel"}\nrest');
  const { first, rest } = await readFirstLine(other);
  assert.deepEqual(first, { op: 'kernel' });
  assert.equal(String(rest), 'rest');
});

test('a first line may have 32 KiB, and one byte more is refused', async (t) => {
  const line = (length: number) => JSON.stringify({ op: 'x'.repeat(length - '{"op":""}'.length) });
  const [client, other] = await pair(t);
  client.write(`${line(32 * 1024)}\n`);
  assert.equal(String((await readFirstLine(other)).first.op).length, 32 * 1024 - '{"op":""}'.length);
  const [second, its] = await pair(t);
  second.write(`${line(32 * 1024 + 1)}\n`);
  await assert.rejects(readFirstLine(its), /too long/);
});

test('a first line that is not a message, and a connection that ends before its first line, are refused', async (t) => {
  for (const text of ['GET / HTTP/1.1\r\n', '[]\n', '{"id":1}\n', '"op"\n']) {
    const [client, other] = await pair(t);
    client.write(text);
    await assert.rejects(readFirstLine(other), /no message|not JSON/, text);
  }
  const [client, other] = await pair(t);
  client.end();
  await assert.rejects(readFirstLine(other), /ended before/);
});

test('messages whose bytes are cut at any place arrive whole, and a line of more than 512 KiB ends the connection', async (t) => {
  const [client, other] = await pair(t);
  const found: FrameFields[] = [];
  let broken: unknown;
  readLines(
    other,
    Buffer.from('{"op":"a"}\n{"op'),
    (message) => found.push(message),
    (error) => {
      broken = error;
    },
  );
  client.write('":"b"}\n{"op":"c"}\n');
  client.write(`${JSON.stringify({ op: 'd', text: 'x'.repeat(500_000) })}\n`);
  client.write(`{"op":"${'x'.repeat(600_000)}`);
  await once(other, 'close');
  assert.deepEqual(
    found.map(({ op }) => op),
    ['a', 'b', 'c', 'd'],
  );
  assert.match(String(broken), /too long/);
});

test('the error for a node of another release names both releases', () => {
  const release = { version: '1.0.0', build: 'b1', scripts: 'a', marimo: '0.25.2', python: '3.11.7' };
  assert.equal(compareReleases(release, { ...release }), null);
  assert.match(
    compareReleases(release, { ...release, version: '1.1.0' }) ?? '',
    /Troupe 1\.0\.0 and the node 1\.1\.0/,
  );
  assert.match(
    compareReleases(release, { ...release, python: '3.12.1' }) ?? '',
    /Python 3\.11\.7 and the node 3\.12\.1/,
  );
  assert.equal(
    compareReleases(release, { ...release, build: 'b2' }),
    'The server has the build b1-a of Troupe 1.0.0, and the node the build b2-a. ' +
      "Install the server's build on the node, from the same package or the same commit, and start the node again.",
  );
  assert.match(compareReleases(release, { ...release, scripts: 'b' }) ?? '', /build b1-a .* build b1-b/);
  const { build: _, ...unnamed } = release;
  assert.match(compareReleases(release, decodeRelease(unnamed)) ?? '', /build b1-a .* build unknown-a/);
});
