/** The socket on which a worker listens for the others, as a process that is not a worker meets it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FRAME } from '#src/cluster/peers/frame-socket.ts';
import { PeerClient } from '#src/cluster/peers/peer-client.ts';
import { PeerServer } from '#src/cluster/peers/peer-server.ts';

const SECRET = Buffer.alloc(32, 7);

async function listen(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-peer-'));
  const path = join(folder, 'peer-0.sock');
  const server = await PeerServer.listen({
    path,
    secret: SECRET,
    misplaced: () => undefined,
    handle: () => assert.fail('nobody has sent a request'),
    answer: (topic) => `asked of ${topic}`,
    onFault: (_, error) => assert.fail(String(error)),
  });
  t.after(() => {
    server[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });
  return path;
}

/** Returns the answer to another worker. */
async function askAsWorker(path: string): Promise<unknown> {
  const worker = new PeerClient(path, SECRET, () => assert.fail('there is no stream'));
  try {
    return await new Promise((resolve, reject) => {
      const exchange = worker.begin({
        frame: (_, bytes) => resolve(JSON.parse(bytes.toString('utf8'))),
        closed: () => reject(new Error('closed without an answer')),
      });
      worker.send(FRAME.ask, exchange, Buffer.from(JSON.stringify({ topic: 'usage' })));
    });
  } finally {
    worker.close();
  }
}

for (const [name, claimedBytes] of [
  ['the largest frame', 128 * 2 ** 20],
  ['one byte more than the secret takes', 9 + SECRET.byteLength + 1],
] as const) {
  test(`a connection that announces ${name} before the secret is closed at once`, async (t) => {
    const path = await listen(t);
    const stranger = connect(path).on('error', () => {});
    const announced = Buffer.alloc(5);
    announced.writeUInt32LE(claimedBytes);
    stranger.write(announced);
    await once(stranger, 'close');
    assert.deepEqual(await askAsWorker(path), { value: 'asked of usage' });
  });
}

for (const [name, secret] of [
  ['a wrong secret', Buffer.concat([SECRET.subarray(1), Buffer.from([8])])],
  ['a secret that is too short', SECRET.subarray(1)],
  ['an empty secret', SECRET.subarray(SECRET.byteLength)],
] as const) {
  test(`${name} ends the connection and nothing else`, async (t) => {
    const path = await listen(t);
    const stranger = connect(path).on('error', () => {});
    const head = Buffer.from([9 + secret.byteLength, 0, 0, 0, FRAME.hello, 0, 0, 0, 0]);
    stranger.write(Buffer.concat([head, secret]));
    await once(stranger, 'close');
    assert.deepEqual(await askAsWorker(path), { value: 'asked of usage' });
  });
}

test('a connection without a secret ends after ten seconds, and does not keep a worker from connecting', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const path = await listen(t);
  let closed = 0;
  // The number of connections that the system keeps until they are accepted.
  const silent = Array.from({ length: 500 }, () =>
    connect(path)
      .on('close', () => closed++)
      .on('error', () => {}),
  );
  await once(silent.at(-1)!, 'connect');
  assert.deepEqual(await askAsWorker(path), { value: 'asked of usage' });
  assert.ok(closed >= 500 - 256, `${closed} of 500 were closed to make room`);
  t.mock.timers.tick(10_000);
  await Promise.all(silent.map((socket) => socket.closed || once(socket, 'close')));
});

test('a worker connects even while more connections wait than the system can queue', async (t) => {
  const path = await listen(t);
  // Within one turn of the event loop the server accepts none of them.
  const refused = Array.from({ length: 1000 }, () => connect(path).on('error', () => {}));
  const answer = askAsWorker(path);
  const [error] = (await once(refused.at(-1)!, 'error')) as [NodeJS.ErrnoException];
  assert.equal(error.code, 'EAGAIN');
  assert.deepEqual(await answer, { value: 'asked of usage' });
  for (const socket of refused) socket.destroy();
});

test('a process whose parent is not the primary is refused before it sends anything', async (t) => {
  const path = await listen(t);
  // The parent of the program is this process, whereas the parent of a worker is the parent of this
  // process.
  const program = `require('node:net').connect(${JSON.stringify(path)}).on('close', () => console.log('closed')).on('error', () => {})`;
  const stranger = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [said] = await once(stranger.stdout, 'data');
  assert.equal(String(said), 'closed\n');
  assert.deepEqual(await askAsWorker(path), { value: 'asked of usage' });
});
