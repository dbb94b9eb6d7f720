/** Hooks whose receivers hang, drip, redirect, lie or refuse: none harms the server, and each delivery says what was wrong. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Delivery } from '#src/contract/wire/hook.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { hookReceiver, TAKEN } from '#test/support/stand-ins/hook-receiver.ts';

const server = await startServer(test);
const { hooks } = server.client;

test('a receiver that never answers, and one that sends its headers byte by byte, are given up after 15 seconds', async (t) => {
  const hanging = await hookReceiver(t, () => undefined);
  const dripping = await hookReceiver(t, (_, __, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nx-long: ');
    const drip = setInterval(() => socket.write('a'), 50);
    socket.once('close', () => clearInterval(drip));
  });
  const tests = await Promise.all([hanging, dripping].map(async ({ url }) => tested(url)));
  for (const { status, responseStatus, reason, nextAttemptAt } of tests) {
    assert.deepEqual([status, responseStatus], ['pending', null]);
    assert.deepEqual(reason, {
      code: 'timeout',
      message: 'The receiver did not answer within 15 seconds.',
    });
    assert.notEqual(nextAttemptAt, null);
  }
  await eventually('the connections are closed', () => hanging.open + dripping.open === 0);
});

test('a receiver whose answer has no end is taken at its status, and its connection is closed', async (t) => {
  const receiver = await hookReceiver(t, (response) => {
    response.writeHead(200);
    response.write('thank you');
    const drip = setInterval(() => response.write('.'), 100);
    response.once('close', () => clearInterval(drip));
  });
  const { status, response } = await tested(receiver.url);
  assert.equal(status, 'delivered');
  assert.match(response ?? '', /^thank you\.+$/);
  await eventually('the connection is closed', () => receiver.open === 0);
});

test('of a huge answer the first 1,024 bytes are kept, and the rest is not read', async (t) => {
  let written = 0;
  const receiver = await hookReceiver(t, (response) => {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(64 * 1024))) written += 64 * 1024;
    };
    response.on('drain', more);
    more();
  });
  const { status, response } = await tested(receiver.url);
  assert.deepEqual([status, response], ['delivered', 'x'.repeat(1024)]);
  await eventually('the connection is closed', () => receiver.open === 0);
  assert(written < 64 * 1024 * 1024);
});

test('a redirect is not followed', async (t) => {
  const inner = await hookReceiver(t);
  const receiver = await hookReceiver(t, (response) => {
    response.writeHead(302, { location: inner.url }).end();
  });
  const { status, responseStatus, reason } = await tested(receiver.url);
  assert.deepEqual([status, responseStatus, reason?.code], ['pending', 302, 'redirect']);
  assert.match(reason?.message ?? '', /redirect \(302\), which is not followed/);
  assert.equal(inner.received.length, 0);
});

test('a certificate that cannot be trusted ends the connection before anything is sent', async (t) => {
  const receiver = await hookReceiver(t, TAKEN, true);
  const { status, reason } = await tested(receiver.url);
  assert.deepEqual([status, reason?.code], ['pending', 'tls']);
  assert.match(reason?.message ?? '', /a certificate that cannot be trusted/);
  assert.equal(receiver.received.length, 0);
});

test('a receiver that resets the connection, and one that is not there, are named as such', async (t) => {
  const resetting = await hookReceiver(t, (_, __, socket) => socket.resetAndDestroy());
  const gone = await hookReceiver(t);
  await gone.close();
  const tests = await Promise.all([resetting, gone].map(({ url }) => tested(url)));
  assert.deepEqual(
    tests.map(({ reason }) => reason?.code),
    ['unreachable', 'refused'],
  );
});

test('an answer that is not HTTP is named as such', async (t) => {
  const receiver = await hookReceiver(t, (_, __, socket) => {
    socket.end('SSH-2.0-OpenSSH_9.6\r\n');
  });
  assert.deepEqual((await tested(receiver.url)).reason, {
    code: 'unreadable',
    message: 'The answer of the receiver could not be read as HTTP.',
  });
});

test('a receiver that wants another protocol fails the delivery with the status 101', async (t) => {
  const receiver = await hookReceiver(t, (_, __, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n');
  });
  const { responseStatus, reason } = await tested(receiver.url);
  assert.deepEqual([responseStatus, reason?.message], [101, 'The receiver answered with the status 101.']);
  await eventually('the connection is closed', () => receiver.open === 0);
});

test('a few interim answers may come before the answer, and a receiver that sends them without an end is given up at once', async (t) => {
  const polite = await hookReceiver(t, (response) => {
    response.writeContinue();
    response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    TAKEN(response, polite.received[0]!, response.socket!);
  });
  assert.equal((await tested(polite.url)).status, 'delivered');
  let written = 0;
  const flooding = await hookReceiver(t, (_, __, socket) => {
    const flood = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000));
    const more = () => {
      while (!socket.destroyed && socket.write(flood)) written += flood.byteLength;
    };
    socket.on('drain', more);
    more();
  });
  assert.equal((await tested(flooding.url)).reason?.code, 'unreadable');
  await eventually('the connection is closed', () => flooding.open === 0);
  assert(written < 64 * 1024 * 1024);
});

test('a path that begins with two slashes is a path, and names no host', async (t) => {
  const receiver = await hookReceiver(t);
  assert.equal((await tested(receiver.url.replace('/hook', '//other.example.com/hook'))).status, 'delivered');
  assert.match(receiver.received[0]?.headers.host ?? '', /^127\.0\.0\.1:/);
});

test('a delivery that a receiver refuses with 500 is sent again with its id until it is taken', async (t) => {
  const receiver = await hookReceiver(t, (response) => {
    response.writeHead(500).end('out of order');
  });
  const hook = await hooks.create({ url: receiver.url, events: ['run.failed'] });
  const { id } = await hooks.test(hook.id);
  const failed = await attempted(hook.id, id);
  assert.deepEqual(
    [failed.status, failed.responseStatus, failed.response, failed.reason?.message],
    ['pending', 500, 'out of order', 'The receiver answered with the status 500.'],
  );
  assert.equal((await hooks.get(hook.id)).status, 'backing-off');
  receiver.answer(TAKEN);
  await eventually('the delivery has arrived', async () => {
    const { status, attempts } = await deliveryOf(hook.id, id);
    return status === 'delivered' && attempts === 2;
  });
  assert.deepEqual(
    receiver.received.map((message) => message.id),
    [id, id],
  );
});

test('a receiver that answers 410 pauses the hook, which says why and can be resumed', async (t) => {
  const receiver = await hookReceiver(t, (response) => {
    response.writeHead(410).end();
  });
  const hook = await hooks.create({ url: receiver.url, events: ['run.failed'] });
  const { id } = await hooks.test(hook.id);
  const paused = await eventually('the hook is paused', async () => {
    const now = await hooks.get(hook.id);
    return now.paused ? now : undefined;
  });
  assert.deepEqual([paused.status, paused.reason?.code, paused.pending], ['paused', 'gone', 0]);
  assert.equal((await deliveryOf(hook.id, id)).status, 'dead');
  receiver.answer(TAKEN);
  await hooks.update(hook.id, { expectedUpdatedAt: paused.updatedAt, paused: false });
  await hooks.replay(hook.id, id);
  await eventually(
    'the delivery has arrived',
    async () => (await deliveryOf(hook.id, id)).status === 'delivered',
  );
});

test('a private address is refused in words unless the operator allows it', async (t) => {
  const guarded = await startServer(t, { TROUPE_EGRESS_ALLOW: 'none' });
  const receiver = await hookReceiver(t);
  for (const url of [receiver.url, 'http://10.0.0.1/hook', 'http://169.254.169.254/latest/meta-data']) {
    const { id: hookId } = await guarded.client.hooks.create({ url, events: ['run.failed'] });
    await guarded.client.hooks.test(hookId);
    const { reason } = await eventually('the attempt is over', async () => {
      const [delivery] = (await guarded.client.hooks.deliveries(hookId)).items;
      return delivery?.reason == null ? undefined : delivery;
    });
    assert.equal(reason?.code, 'not_allowed');
    assert.match(reason?.message ?? '', /An operator can allow it with TROUPE_EGRESS_ALLOW/);
  }
  assert.equal(receiver.received.length, 0);
});

/** Resolves with the test of a new hook once its first attempt is over. */
async function tested(url: string): Promise<Delivery> {
  const hook = await hooks.create({ url, events: ['run.failed'] });
  const { id } = await hooks.test(hook.id);
  return attempted(hook.id, id);
}

async function attempted(hookId: string, deliveryId: string): Promise<Delivery> {
  return eventually('the first attempt is over', async () => {
    const delivery = await deliveryOf(hookId, deliveryId);
    return delivery.reason !== null || delivery.finishedAt !== null ? delivery : undefined;
  });
}

async function deliveryOf(hookId: string, deliveryId: string): Promise<Delivery> {
  const found = (await hooks.deliveries(hookId)).items.find(({ id }) => id === deliveryId);
  assert(found !== undefined);
  return found;
}
