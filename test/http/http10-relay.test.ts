import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import { openHttp10Relay } from '#src/http/http10-relay.ts';

const HOST = '127.0.0.1';

async function relayTo(t: TestContext, serve: (req: IncomingMessage, res: ServerResponse) => void) {
  const server = createServer(serve).listen(0, HOST);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const relay = await openHttp10Relay({
    host: HOST,
    port: 0,
    target: () => ({ host: '0.0.0.0', port: address.port }),
  });
  t.after(() => relay[Symbol.dispose]());
  return relay;
}

/** Everything that comes back until the connection ends. */
async function sendRaw(port: number, lines: readonly string[]): Promise<string> {
  const socket = connect(port, HOST);
  socket.write(lines.join('\r\n'));
  return text(socket);
}

test('a request of HTTP/1.0 is answered, and its connection ends with the answer', async (t) => {
  const { port } = await relayTo(t, (req, res) => {
    assert.equal(req.httpVersion, '1.1');
    res.writeHead(201, { 'x-twice': ['a', 'b'] }).write('half ');
    setImmediate(() => res.end(`of ${req.url}`));
  });
  const answer = await sendRaw(port, ['GET /a%20b?c=d HTTP/1.0', 'Host: x', '', '']);
  assert.match(answer, /^HTTP\/1\.1 201 Created\r\n/);
  assert.match(answer, /x-twice: a\r\nx-twice: b\r\n/);
  assert.doesNotMatch(answer, /transfer-encoding/i, 'of which HTTP/1.0 knows nothing');
  assert.ok(answer.endsWith('\r\n\r\nhalf of /a%20b?c=d'));
});

test('a body goes on, whether its length is told or not', async (t) => {
  const { port } = await relayTo(t, (req, res) => {
    void text(req).then((body) => res.end(`${req.method} ${body}`));
  });
  const told = await sendRaw(port, ['PUT / HTTP/1.0', 'Content-Length: 5', '', 'hello']);
  assert.match(told, /PUT hello$/);
  const chunked = request({ host: HOST, port, method: 'POST', agent: false });
  chunked.write('in ');
  chunked.end('pieces');
  const [reply] = await once(chunked, 'response');
  assert.equal(await text(reply), 'POST in pieces');
});

test('headers arrive as they were sent, but for those of the connection', async (t) => {
  const { port } = await relayTo(t, (req, res) => res.end(JSON.stringify(req.headers)));
  const answer = await sendRaw(port, [
    'GET / HTTP/1.0',
    'Host: public.example',
    'Authorization: Bearer t',
    'X-Forwarded-Proto: https',
    'Connection: close, X-Hop',
    'X-Hop: 1',
    'Keep-Alive: 5',
    'Upgrade: other',
    '',
    '',
  ]);
  assert.deepEqual(JSON.parse(answer.slice(answer.indexOf('{'))), {
    host: 'public.example',
    authorization: 'Bearer t',
    'x-forwarded-proto': 'https',
    connection: 'close',
  });
});

test('an answer is passed on while it is made, and ends at the server when the caller goes away', async (t) => {
  let gone: Promise<unknown> | undefined;
  const { port } = await relayTo(t, (_, res) => {
    gone = once(res, 'close');
    res.writeHead(200).write('first');
  });
  const socket = connect(port, HOST);
  socket.write('GET / HTTP/1.0\r\n\r\n');
  for await (const chunk of socket) if (String(chunk).includes('first')) break;
  socket.destroy();
  assert.ok(gone);
  await gone;
});

test('an answer that breaks off does not look like one that has ended', async (t) => {
  const { port } = await relayTo(t, (_, res) => {
    res.writeHead(200, { 'content-length': 100 }).write('a part', () => res.destroy());
  });
  await assert.rejects(fetch(`http://${HOST}:${port}/`).then((answer) => answer.text()));
});

test('while the server does not listen, requests are told to come back', async (t) => {
  for (const target of [undefined, { host: HOST, port: 1 }]) {
    const relay = await openHttp10Relay({ host: HOST, port: 0, target: () => target });
    t.after(() => relay[Symbol.dispose]());
    const answer = await fetch(`http://${HOST}:${relay.port}/readyz?x`);
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '1']);
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    const problem = (await answer.json()) as Record<string, unknown>;
    assert.deepEqual([problem.code, problem.instance], ['unavailable', '/readyz']);
  }
});

test('a port that is taken is one clear line', async (t) => {
  const { port } = await relayTo(t, (_, res) => res.end());
  await assert.rejects(openHttp10Relay({ host: HOST, port, target: () => undefined }), {
    message: new RegExp(`^Cannot listen on ${HOST}, port ${port}, for HTTP/1.0: `),
  });
});
