import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { encodeFrame, encodeLongFrame } from '#src/confined/processes/frame-decoder.ts';
import { MAX_QUEUED_BYTES } from '#src/confined/processes/frame-sender.ts';
import { ShapeError } from '#src/confined/processes/json-shape.ts';
import {
  type FrameReading,
  JSON_FRAMES,
  KernelSocket,
  type SocketEvents,
} from '#src/confined/processes/kernel-socket.ts';
import { eventually } from '#test/support/processes.ts';

const READY = { op: 'bridge-ready' };

async function listen(
  t: TestContext,
  refuse = (_value: unknown) => false,
  reading: FrameReading = JSON_FRAMES,
) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-socket-'));
  const path = join(folder, 's');
  const server = createServer((connection) => {
    server.close();
    socket.take(connection, Buffer.alloc(0));
  });
  const events: unknown[] = [];
  let onClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve;
  });
  const socketEvents: SocketEvents = {
    received: (values) => {
      events.push(values);
      if (values.some(refuse)) throw new ShapeError('nonsense');
    },
    broken: (reason) => events.push(`broken: ${reason}`),
    deaf: () => events.push('deaf'),
    failed: (error) => events.push(`failed: ${error}`),
    closed: () => {
      events.push('closed');
      onClosed();
    },
  };
  const socket = new KernelSocket(socketEvents, reading);
  t.after(() => {
    socket.destroy();
    rmSync(folder, { recursive: true });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { socket, path, events, closed };
}

for (const [name, bytes, reason] of [
  ['text that is no frame', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'a frame of 542393671 bytes'],
  ['a frame that is not JSON', Buffer.from([3, 0, 0, 0, 0, 0x7b, 0x7b]), 'a frame that is not JSON'],
  ['a frame on a channel of ours', encodeFrame(1, {}), 'a frame on channel 1'],
  ['an empty frame', Buffer.alloc(5), 'an empty frame'],
  ['a message the reader refuses', encodeFrame(0, 'refuse me'), 'nonsense'],
] as const) {
  test(`${name} ends the connection after the valid messages`, async (t) => {
    const { path, events, closed } = await listen(t, (value) => value === 'refuse me');
    connect(path)
      .on('error', () => {})
      .write(Buffer.concat([encodeFrame(0, READY), bytes]));
    await closed;
    const received = events.flatMap((event) => (Array.isArray(event) ? event : []));
    assert.deepEqual(received[0], READY);
    assert.deepEqual(events.slice(-2), [`broken: ${reason}`, 'closed']);
  });
}

test('a long frame is parsed in order with other frames, and a broken frame ends the connection', async (t) => {
  const { path, events, closed } = await listen(t);
  const other = connect(path);
  const long = { op: 'long', text: '"\\ä😀'.repeat(300_000) };
  other.write(Buffer.concat([encodeFrame(0, READY), encodeFrame(0, long), encodeFrame(0, { op: 'after' })]));
  const broken = Buffer.from(encodeFrame(0, long));
  broken[broken.length - 1] = 0x5d; // `]` in place of `}`
  other.write(broken);
  await closed;
  const values = events.flatMap((event) => (Array.isArray(event) ? event : []));
  assert.deepEqual(values.slice(1), [long, { op: 'after' }]);
  assert.deepEqual(
    events.filter((event) => typeof event === 'string'),
    ['broken: a frame that is not JSON', 'closed'],
  );
});

test('a frame that takes long is processed alone, and later frames wait for the next turn', async (t) => {
  const mayTakeLong = (value: unknown) => value === 'long';
  const { path, events, closed } = await listen(t, undefined, { ...JSON_FRAMES, mayTakeLong });
  const quick = Array.from({ length: 2000 }, () => encodeFrame(0, 'quick'));
  const long = Array.from({ length: 20 }, () => encodeFrame(0, 'long'));
  connect(path).end(Buffer.concat([encodeFrame(0, READY), ...quick, ...long, ...quick.slice(0, 10)]));
  await closed;
  const batches = events.filter((event): event is unknown[] => Array.isArray(event));
  const counts = batches.map((batch) => batch.filter(mayTakeLong).length).filter((count) => count > 0);
  assert.deepEqual([batches.flat().length, counts], [1 + 2000 + 20 + 10, long.map(() => 1)]);
  assert.ok(batches.every((batch) => !batch.slice(0, -1).some(mayTakeLong)));
  assert.ok(
    batches.some((batch) => batch.length >= 100),
    'quick frames are handed over together',
  );
});

test('frames that take long to parse are handed over one by one', async (t) => {
  let [nowMs, parsedBefore] = [0, 0];
  t.mock.method(performance, 'now', () => nowMs);
  const parse = (body: Buffer) => {
    nowMs += parsedBefore++ < 2000 ? 0 : 10;
    return JSON_FRAMES.parse(body);
  };
  const { path, events, closed } = await listen(t, undefined, { ...JSON_FRAMES, parse });
  const frames = Array.from({ length: 2050 }, (_, n) => encodeFrame(0, n));
  connect(path).end(Buffer.concat([encodeFrame(0, READY), ...frames]));
  await closed;
  const batches = events.filter((event): event is unknown[] => Array.isArray(event));
  assert.equal(batches.flat().length, 2051);
  assert.deepEqual(
    batches.slice(-49).map((batch) => batch.length),
    Array.from({ length: 49 }, () => 1),
  );
});

/** A socket with a child that has connected, and everything that the child reads. */
async function connectChild(t: TestContext) {
  const { socket, path, events, closed } = await listen(t);
  const child = connect(path);
  const received: Buffer[] = [];
  child.on('data', (chunk) => received.push(chunk));
  child.write(encodeFrame(0, READY));
  await once(child, 'connect');
  await nextTurn();
  /** Resolves once the child has read all these frames. */
  const readAll = async (...frames: readonly Uint8Array[]) => {
    const all = Buffer.concat(frames);
    while (Buffer.concat(received).length < all.length) await once(child, 'data');
    assert.ok(Buffer.concat(received).equals(all));
  };
  return { socket, child, events, closed, readAll };
}

test('frames that are sent while a long frame is being made follow that frame', async (t) => {
  const { socket, readAll } = await connectChild(t);
  const long = encodeLongFrame(1, { text: 'x'.repeat(1_000_000) });
  assert.ok(long instanceof Promise);
  const sent: string[] = [];
  const [first, last] = [encodeFrame(1, 'first'), encodeFrame(1, 'last')];
  socket.sender.send([first], () => sent.push('first'));
  assert.deepEqual(sent, ['first'], 'there was room for it');
  socket.sender.send(long, () => sent.push('long'));
  const isSent = new Promise<void>((resolve) => socket.sender.send([last], resolve));
  assert.deepEqual(sent, ['first']);
  await readAll(first, ...(await long), last);
  await isSent;
  assert.deepEqual(sent, ['first', 'long']);
});

test('a frame is reported as sent only when the child can read all of it', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] }); // so that nothing is reported because of the time
  const { socket, child, readAll } = await connectChild(t);
  child.pause();
  const [large, last] = [encodeFrame(1, 'x'.repeat(4_000_000)), encodeFrame(1, 'last')];
  socket.sender.send([large]);
  let isSent = false;
  const sent = new Promise<void>((resolve) => {
    socket.sender.send([last], () => {
      isSent = true;
      resolve();
    });
  });
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(isSent, false);
  child.resume();
  await Promise.all([sent, readAll(large, last)]);
});

test('the server waits for a child that does not read only for a limited time, and reports its unsent frames once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { socket, child, readAll } = await connectChild(t);
  child.pause();
  const [large, last] = [encodeFrame(1, 'x'.repeat(4_000_000)), encodeFrame(1, 'last')];
  socket.sender.send([large]);
  let reports = 0;
  socket.sender.send([last], () => reports++);
  t.mock.timers.tick(99);
  assert.equal(reports, 0);
  t.mock.timers.tick(1);
  assert.equal(reports, 1);
  child.resume();
  await readAll(large, last);
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  assert.equal(reports, 1);
});

test('a held socket hands over no frame until it is released, and then the remaining frames in order', async (t) => {
  const reading = { ...JSON_FRAMES, mayTakeLong: (value: unknown) => value === 2 };
  const { path, socket, events, closed } = await listen(t, holdAtTwo, reading);
  function holdAtTwo(value: unknown): boolean {
    if (value === 2) socket.hold(true);
    return false;
  }
  const received = () => events.flatMap((event) => (Array.isArray(event) ? event : []));
  const child = connect(path);
  child.write(Buffer.concat([0, 1, 2, 3, 4].map((n) => encodeFrame(0, n))));
  await eventually('the value that holds the socket', () => received().length >= 3);
  child.end(encodeFrame(0, 5));
  for (let turn = 0; turn < 20; turn++) await nextTurn();
  assert.deepEqual(received(), [0, 1, 2]);
  assert.equal(socket.isWorking, false);
  socket.hold(false);
  await closed;
  assert.deepEqual(received(), [0, 1, 2, 3, 4, 5]);
});

test('a child that does not read is cut off when more than the limit is sent, and its unsent frames are freed', async (t) => {
  const { socket, child, events, closed } = await connectChild(t);
  child.pause();
  const large = Buffer.alloc(2 ** 20);
  let most = 0;
  for (let count = 0; count < 300; count++) {
    socket.sender.send([large]);
    most = Math.max(most, socket.sender.queuedBytes);
  }
  assert.ok(most > MAX_QUEUED_BYTES && most <= MAX_QUEUED_BYTES + large.length);
  await closed;
  assert.deepEqual(events.slice(-2), ['deaf', 'closed']);
  assert.equal(socket.sender.queuedBytes, 0);
});

test('while a long frame is encoded, later frames count as queued until the child has taken them', async (t) => {
  const { socket, readAll } = await connectChild(t);
  const { sender } = socket;
  let drained = 0;
  sender.onDrained = () => drained++;
  const long = encodeLongFrame(1, { text: 'x'.repeat(1_000_000) });
  const behind = encodeFrame(1, 'y'.repeat(1000));
  sender.send(long);
  sender.send([behind]);
  assert.deepEqual([sender.queuedBytes, sender.isIdle], [behind.length, false]);
  await readAll(...(await long), behind);
  await eventually('the sender has nothing left', () => drained > 0);
  assert.deepEqual([sender.queuedBytes, sender.isIdle], [0, true]);
});
