import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import { ConnectionLimit } from '#src/http/edge/connection-limit.ts';
import { openHttp10Relay } from '#src/http/edge/http10-relay.ts';
import { raw } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { healthRoutes } from '#src/http/routes/health.ts';
import { landingPageRoute } from '#src/http/routes/landing-page.ts';
import { HOST, relayTo, sendRaw } from './relay-to.ts';
import { serve } from './test-server.ts';

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

test('headers arrive as they were sent, but for those of the connection and those that the server cannot read', async (t) => {
  const { port } = await relayTo(t, (req, res) => res.end(JSON.stringify(req.headers)));
  const answer = await sendRaw(port, [
    'GET / HTTP/1.0',
    'Host: public.example',
    'Authorization: Bearer t',
    'X-Forwarded-Proto: https',
    'Connection: close, X-Hop',
    'X-Hop: 1',
    'X_Odd: 1',
    'X.Odd: 1',
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
    const relay = await openHttp10Relay({
      host: HOST,
      port: 0,
      target: () => target,
      connections: new ConnectionLimit(),
    });
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
  await assert.rejects(
    openHttp10Relay({ host: HOST, port, target: () => undefined, connections: new ConnectionLimit() }),
    {
      message: `Cannot listen on ${HOST}:${port}: another program uses the port. Stop that program (ss -ltnp shows it), or set TROUPE_HTTP10_PORT to another port.`,
    },
  );
});

/** A connection that sends this and then no more; `ended` has the seconds until the relay has closed it. */
function open(port: number, bytes = '') {
  const socket = connect({ port, host: HOST, allowHalfOpen: true });
  socket.on('error', () => {});
  if (bytes !== '') socket.write(bytes);
  const startedAt = performance.now();
  const ended = once(socket.resume(), 'close').then(() => (performance.now() - startedAt) / 1000);
  socket.on('end', () => socket.end());
  return { socket, ended };
}

test('clients that stop in the middle, or drip, are sent away in the time of the main port', async (t) => {
  const { port } = await relayTo(t, (req, res) => void req.resume().on('end', () => res.end('done')));
  const body = 'POST / HTTP/1.0\r\nContent-Length: 100000000\r\n\r\n';
  const chunked = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const slow = {
    silent: open(port),
    'half a head': open(port, 'GET / HTTP/1.0\r\nX-Slow: '),
    'a dripping head': drip(t, open(port, 'GET / HTTP/1.0\r\nX-Slow: '), 'a'),
    'half a body': open(port, `${body}{`),
    'a dripping body': drip(t, open(port, body), 'a'),
    'a body in dripping chunks': drip(t, open(port, chunked), '1\r\na\r\n'),
    'a dripping body that ends a side': drip(t, open(port, body), 'a', 5),
  };
  await Promise.all(
    Object.entries(slow).map(async ([name, { ended }]) => {
      const afterS = await ended;
      assert.ok(afterS < 14, `${name} was there for ${afterS} s`);
    }),
  );
});

function drip(t: TestContext, connection: ReturnType<typeof open>, bytes: string, thenEndS?: number) {
  const timer = setInterval(() => connection.socket.writable && connection.socket.write(bytes), 300);
  if (thenEndS !== undefined) setTimeout(() => connection.socket.end(), thenEndS * 1000).unref();
  t.after(() => clearInterval(timer));
  void connection.ended.then(() => clearInterval(timer));
  return connection;
}

test('a body that comes at a sensible speed takes as long as it takes', async (t) => {
  const { port } = await relayTo(t, (req, res) => {
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    req.on('end', () => res.end(`${bytes}`));
  });
  const piece = Buffer.alloc(64 * 1024);
  const upload = request({ host: HOST, port, method: 'POST', agent: false });
  for (let n = 0; n < 12; n++) {
    upload.write(piece);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  upload.end();
  const [reply] = await once(upload, 'response');
  assert.equal(await text(reply), String(12 * piece.length));
});

test('a stream may be silent for long, and a client that reads nothing of an answer is cut off', async (t) => {
  let silent: ServerResponse | undefined;
  const { port } = await relayTo(t, (req, res) => {
    if (req.url === '/silent') {
      res.writeHead(200).write('first');
      silent = res;
    } else res.end(Buffer.alloc(32 * 1024 * 1024));
  });
  const stream = connect(port, HOST);
  stream.write('GET /silent HTTP/1.0\r\n\r\n');
  await once(stream, 'readable'); // so that it is silent for longer than the other is unread
  const whole = text(stream);
  const unread = connect(port, HOST);
  unread.on('error', () => {});
  unread.pause();
  unread.write('GET /large HTTP/1.0\r\n\r\n');
  const connections = () => portsWith(port).length;
  await until(() => connections() === 2);
  await until(() => connections() === 1);
  silent?.end(' last');
  assert.match(await whole, /first last$/);
  unread.destroy();
});

/** The connections that this process has accepted on a port. */
function portsWith(port: number): string[] {
  const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/self/net/tcp', 'latin1').split('\n');
  return lines.filter((line) => / 01 /.test(line) && line.trim().split(/\s+/)[1] === local);
}

async function until(isTrue: () => boolean): Promise<void> {
  // A connection that has taken anything in the last ten seconds gets ten more, and the system may take bytes for a while.
  for (const deadline = Date.now() + 120_000; !isTrue(); ) {
    assert.ok(Date.now() < deadline, 'it never came true');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

test('a connection takes one request, however many it sends at once', async (t) => {
  let requests = 0;
  const { port } = await relayTo(t, (_, res) => {
    requests++;
    setTimeout(() => res.end('one'), 50);
  });
  const answer = await sendRaw(port, ['GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(200)]);
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n[\s\S]*connection: close/i);
  assert.equal(requests, 1);
});

test('connections count into the limit of the server, of which its own port keeps half', async (t) => {
  const connections = new ConnectionLimit(1_000);
  const main = await serveThings(t, connections);
  const relay = await openHttp10Relay({ host: HOST, port: 0, target: () => main, connections });
  t.after(() => relay[Symbol.dispose]());
  const crowd = Array.from({ length: 1_000 }, () => open(relay.port));
  t.after(() => crowd.forEach(({ socket }) => void socket.destroy()));
  let closed = 0;
  for (const { ended } of crowd) void ended.then(() => closed++);
  await until(() => closed === 750); // a connection is counted with the one it will need to the server
  for (let n = 0; n < 20; n++)
    assert.equal(await (await fetch(`http://${HOST}:${main.port}/thing`)).text(), 'hello');
  crowd.find(({ socket }) => !socket.destroyed)?.socket.destroy();
  await until(() => closed === 751);
  const answer = await sendRaw(relay.port, ['GET /thing HTTP/1.0', '', '']);
  assert.match(answer, /hello$/);
  const lasted = await Promise.all(crowd.map(({ ended }) => ended));
  assert.ok(Math.max(...lasted) < 14, 'idle ones are sent away');
});

test('the checks that HAProxy makes by itself are answered', async (t) => {
  let isReady = true;
  const health = healthRoutes(() => ({ ready: isReady }));
  const server = await serve(t, [landingPageRoute({ version: '1', routes: health }), ...health]);
  const target = () => ({ host: HOST, port: server.port });
  const relay = await openHttp10Relay({ host: HOST, port: 0, target, connections: new ConnectionLimit() });
  t.after(() => relay[Symbol.dispose]());
  const check = async (request: string) =>
    (await sendRaw(relay.port, [`${request} HTTP/1.0`, '', ''])).split(' ', 2)[1];
  assert.equal(await check('OPTIONS /'), '204');
  assert.equal(await check('GET /readyz'), '200');
  isReady = false;
  assert.equal(await check('GET /readyz'), '503');
});

function serveThings(t: TestContext, connections: ConnectionLimit) {
  const thing = defineRoute({
    method: 'GET',
    path: '/thing',
    operationId: 'thing',
    summary: 's',
    tags: [],
    access: 'public',
    responses: { 200: { description: 'd' } },
    handle: () => raw('text/plain', 'hello'),
  });
  return serve(t, [thing], { connections });
}
