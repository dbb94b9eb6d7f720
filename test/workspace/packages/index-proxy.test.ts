import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { Agent, createServer as createHttpServer, get, type RequestListener } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import test, { type TestContext } from 'node:test';
import { IndexProxy } from '#src/workspace/packages/index-proxy.ts';
import { eventually } from '#test/support/processes.ts';

/** Sends the lines of one request. Resolves with the first line of the answer. */
async function answerTo(port: number, ...lines: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.end(`${[...lines, 'Host: x', 'Connection: close'].join('\r\n')}\r\n\r\n`);
  const [line = ''] = (await text(socket)).split('\r\n');
  return line;
}

async function openProxy(t: TestContext) {
  const asked: string[] = [];
  const proxy = await IndexProxy.open('https://index.example/simple', async (host) => {
    asked.push(host);
    throw new Error('it may not be reached');
  });
  t.after(() => proxy[Symbol.asyncDispose]());
  const { username, password } = new URL(proxy.url);
  const key = `Proxy-Authorization: Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  return { proxy, asked, key };
}

const ODD_TARGETS = ['x:99999', ':0', '[::', 'a b', '%', 'http://x', 'user@'];

test('a request without the password is refused, and no name is resolved for it', async (t) => {
  const { proxy, asked } = await openProxy(t);
  for (const target of ['index.example:443', ...ODD_TARGETS])
    assert.match(await answerTo(proxy.port, `CONNECT ${target} HTTP/1.1`), /^HTTP\/1\.1 40[03] /, target);
  assert.equal(await answerTo(proxy.port, 'GET http://index.example/ HTTP/1.1'), 'HTTP/1.1 403 Forbidden');
  assert.deepEqual(asked, []);
});

test('a target that is not an address is refused', async (t) => {
  const { proxy, asked, key } = await openProxy(t);
  for (const target of ODD_TARGETS)
    assert.match(
      await answerTo(proxy.port, `CONNECT ${target} HTTP/1.1`, key),
      /^HTTP\/1\.1 40[03] /,
      target,
    );
  assert.equal(
    await answerTo(proxy.port, 'CONNECT index.example:443 HTTP/1.1', key),
    'HTTP/1.1 403 Forbidden',
  );
  assert.ok(asked.includes('index.example'));
});

test('at most 128 connections without the password stay open, and an installer can still connect', async (t) => {
  const { proxy, asked, key } = await openProxy(t);
  let closed = 0;
  const strangers = Array.from({ length: 300 }, () =>
    connect(proxy.port, '127.0.0.1')
      .on('error', () => {})
      .on('close', () => closed++)
      .resume(),
  );
  t.after(() => {
    for (const socket of strangers) socket.destroy();
  });
  await eventually('the oldest are closed', () => closed === 300 - 128);
  await answerTo(proxy.port, 'CONNECT index.example:443 HTTP/1.1', key);
  assert.deepEqual(asked, ['index.example']);
  assert.ok(closed <= 300 - 128 + 1);
});

test('a connection to the index that opens after its client has left is closed', async (t) => {
  const index = createServer().listen(0, '127.0.0.1');
  await once(index, 'listening');
  t.after(() => void index.close());
  const { port } = index.address() as AddressInfo;
  const gate = new EventEmitter();
  const proxy = await IndexProxy.open('https://index.example/simple', async () => {
    const admitted = once(gate, 'admitted');
    gate.emit('asked');
    await admitted;
    return { connect: () => connect(port, '127.0.0.1'), [Symbol.dispose]() {} };
  });
  const { username, password } = new URL(proxy.url);
  for (const line of ['CONNECT index.example:443 HTTP/1.1', 'GET http://index.example/ HTTP/1.1']) {
    const asked = once(gate, 'asked');
    const client = connect(proxy.port, '127.0.0.1');
    const key = Buffer.from(`${username}:${password}`).toString('base64');
    client.write(`${line}\r\nHost: x\r\nProxy-Authorization: Basic ${key}\r\n\r\n`);
    await asked;
    client.destroy();
    await once(client, 'close');
    const reached = once(index, 'connection');
    gate.emit('admitted');
    const [connection] = await reached;
    connection.resume();
    await once(connection, 'close', { signal: AbortSignal.timeout(5000) });
  }
  await proxy[Symbol.asyncDispose]();
});

/** Starts an index without TLS. Returns its port. */
async function startIndex(t: TestContext, answer: RequestListener): Promise<number> {
  const index = createHttpServer(answer).listen(0, '127.0.0.1');
  await once(index, 'listening');
  t.after(() => {
    index.closeAllConnections();
    index.close();
  });
  return (index.address() as AddressInfo).port;
}

/** Returns a function that asks for an address through a proxy which reaches everything, on connections that stay open. */
async function openClient(t: TestContext) {
  const proxy = await IndexProxy.open('http://index.example/simple', async (host, port) => ({
    connect: () => connect(port, host),
    [Symbol.dispose]() {},
  }));
  t.after(() => proxy[Symbol.asyncDispose]());
  const { username, password, port } = new URL(proxy.url);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const key = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  return async (path: string) => {
    const headers = { host: new URL(path).host, 'proxy-authorization': key };
    const asked = get({ host: '127.0.0.1', port, agent, path, headers });
    const [answer] = await once(asked, 'response');
    return { text: await text(answer), isReused: asked.reusedSocket };
  };
}

test('several requests on one connection each reach their own target', async (t) => {
  const ask = await openClient(t);
  const ports = [
    await startIndex(t, ({ url }, response) => void response.end(`first ${url}`)),
    await startIndex(t, ({ url }, response) => {
      // Headers about one connection do not concern the other.
      response.setHeader('connection', 'close');
      response.end(`second ${url}`);
    }),
  ];
  for (let i = 0; i < 20; i++) {
    const name = i % 2 === 0 ? 'first' : 'second';
    const answer = await ask(`http://127.0.0.1:${ports[i % 2]}/simple/${i}`);
    assert.deepEqual(answer, { text: `${name} /simple/${i}`, isReused: i > 0 });
  }
});

test('a truncated response of the index is truncated for the installer as well', {
  timeout: 20_000,
}, async (t) => {
  const ask = await openClient(t);
  const port = await startIndex(t, (_, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('half');
    setImmediate(() => response.destroy());
  });
  await assert.rejects(ask(`http://127.0.0.1:${port}/simple/a`));
});
