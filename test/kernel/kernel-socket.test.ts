import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { encodeFrame, encodeLongFrame } from '#src/kernel/frame-decoder.ts';
import { ShapeError } from '#src/kernel/json-shape.ts';
import { KernelSocket } from '#src/kernel/kernel-socket.ts';

const TOKEN = 'a'.repeat(64);
const GREETING = encodeFrame(0, { op: 'bridge-ready', token: TOKEN });

async function listen(t: TestContext, refuse = (_value: unknown) => false) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-socket-'));
  const path = join(folder, 's');
  const events: unknown[] = [];
  let onClosed = () => {};
  const closed = new Promise<void>((resolve) => {
    onClosed = resolve;
  });
  const socket = new KernelSocket(TOKEN, {
    accepted: () => events.push('accepted'),
    received: (values) => {
      events.push(values);
      if (values.some(refuse)) throw new ShapeError('nonsense');
    },
    broken: (reason) => events.push(`broken: ${reason}`),
    failed: (error) => events.push(`failed: ${error}`),
    closed: () => {
      events.push('closed');
      onClosed();
    },
  });
  t.after(() => {
    socket.destroy();
    rmSync(folder, { recursive: true });
  });
  await socket.listen(path);
  return { socket, path, events, closed };
}

test('the path is gone once somebody has connected, and nobody else gets in', async (t) => {
  const { path, events, closed } = await listen(t);
  const [first, second] = [connect(path), connect(path)];
  second.on('error', () => {});
  await new Promise<void>((resolve) => {
    second.on('close', () => resolve());
  });
  assert.equal(existsSync(path), false);
  first.end(GREETING);
  await closed;
  assert.deepEqual(events, ['accepted', [{ op: 'bridge-ready', token: TOKEN }], 'closed']);
});

for (const [name, greeting] of [
  ['another token of the same length', encodeFrame(0, { op: 'bridge-ready', token: 'b'.repeat(64) })],
  ['a shorter token', encodeFrame(0, { op: 'bridge-ready', token: 'a' })],
  ['no token', encodeFrame(0, { op: 'bridge-ready' })],
  ['a token that is no string', encodeFrame(0, { op: 'bridge-ready', token: [TOKEN] })],
  ['another message first', encodeFrame(0, { op: 'bridge-done', seq: 1 })],
] as const) {
  test(`${name} is refused and nothing of it is believed`, async (t) => {
    const { path, events, closed } = await listen(t);
    connect(path)
      .on('error', () => {})
      .write(Buffer.concat([greeting, GREETING]));
    await closed;
    assert.deepEqual(events, ['accepted', 'broken: a greeting without the right token', 'closed']);
  });
}

for (const [name, bytes, reason] of [
  ['text that is no frame', Buffer.from('GET / HTTP/1.1\r\n\r\n'), 'a frame of 542393671 bytes'],
  ['a frame that is not JSON', Buffer.from([3, 0, 0, 0, 0, 0x7b, 0x7b]), 'a frame that is not JSON'],
  ['a frame on a channel of ours', encodeFrame(1, {}), 'a frame on channel 1'],
  ['an empty frame', Buffer.alloc(5), 'an empty frame'],
  ['a message the reader refuses', encodeFrame(0, 'refuse me'), 'nonsense'],
] as const) {
  test(`${name} ends the connection after what was good`, async (t) => {
    const { path, events, closed } = await listen(t, (value) => value === 'refuse me');
    connect(path)
      .on('error', () => {})
      .write(Buffer.concat([GREETING, bytes]));
    await closed;
    const received = events.flatMap((event) => (Array.isArray(event) ? event : []));
    assert.deepEqual(received[0], { op: 'bridge-ready', token: TOKEN });
    assert.deepEqual(events.slice(-2), [`broken: ${reason}`, 'closed']);
  });
}

test('a long frame is parsed between others, in its place, and a broken one ends the connection', async (t) => {
  const { path, events, closed } = await listen(t);
  const other = connect(path);
  const long = { op: 'long', text: '"\\ä😀'.repeat(300_000) };
  other.write(Buffer.concat([GREETING, encodeFrame(0, long), encodeFrame(0, { op: 'after' })]));
  const broken = Buffer.from(encodeFrame(0, long));
  broken[broken.length - 1] = 0x5d; // `]` in place of `}`
  other.write(broken);
  await closed;
  const values = events.flatMap((event) => (Array.isArray(event) ? event : []));
  assert.deepEqual(values.slice(1), [long, { op: 'after' }]);
  assert.deepEqual(
    events.filter((event) => typeof event === 'string' && event !== 'accepted'),
    ['broken: a frame that is not JSON', 'closed'],
  );
});

test('what is sent or done while a long frame is made comes after it', async (t) => {
  const { socket, path } = await listen(t);
  const other = connect(path);
  const received: Buffer[] = [];
  other.on('data', (chunk) => received.push(chunk));
  other.write(GREETING);
  await once(other, 'connect');
  await nextTurn();
  const long = encodeLongFrame(1, { text: 'x'.repeat(1_000_000) });
  assert.ok(long instanceof Promise);
  const done: string[] = [];
  socket.whenSent(() => done.push('before'));
  socket.sendMade(long);
  socket.whenSent(() => done.push('after'));
  assert.deepEqual(done, ['before']);
  const last = encodeFrame(1, 'last');
  socket.send(last);
  const all = Buffer.concat([...(await long), last]);
  while (Buffer.concat(received).length < all.length) await once(other, 'data');
  assert.ok(Buffer.concat(received).equals(all));
  assert.deepEqual(done, ['before', 'after']);
});
