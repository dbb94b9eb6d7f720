import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeFrame, FrameDecoder, FrameError } from '#src/confined/processes/frame-decoder.ts';
import { assertLinear } from '#test/support/growth.ts';

const MESSAGES = [{ op: 'a', text: 'héllo ✓' }, 'x', { op: 'b', list: [1, null] }, ''];
const STREAM = Buffer.concat(MESSAGES.map((message, i) => encodeFrame(i, message)));

function decode(decoder: FrameDecoder, ...chunks: readonly Buffer[]): unknown[] {
  const found: unknown[] = [];
  for (const chunk of chunks) {
    for (const { channel, body } of decoder.push(chunk)) {
      const value: unknown = JSON.parse(body.toString());
      found.push([channel, value]);
    }
  }
  return found;
}

const expected = MESSAGES.map((message, i) => [i, message]);

test('frames are decoded whole when the stream is split in two at any place', () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const found = decode(new FrameDecoder(1000), STREAM.subarray(0, at), STREAM.subarray(at));
    assert.deepEqual(found, expected, `split at ${at}`);
  }
});

test('frames are decoded whole when the stream is split in three at any places', () => {
  for (let first = 0; first <= STREAM.length; first++) {
    for (let second = first; second <= STREAM.length; second++) {
      const pieces = [STREAM.subarray(0, first), STREAM.subarray(first, second), STREAM.subarray(second)];
      assert.deepEqual(decode(new FrameDecoder(1000), ...pieces), expected);
    }
  }
});

test('frames are decoded whole when the stream arrives byte by byte', () => {
  const bytes = Array.from(STREAM, (byte) => Buffer.from([byte]));
  assert.deepEqual(decode(new FrameDecoder(1000), ...bytes), expected);
});

test('a frame above the limit is refused after its header, and the frames before it are delivered', () => {
  const header = Buffer.alloc(5);
  header.writeUInt32LE(1001, 0);
  const found: number[] = [];
  assert.throws(() => {
    for (const { channel } of new FrameDecoder(1000).push(Buffer.concat([encodeFrame(7, 'x'), header])))
      found.push(channel);
  }, new FrameError('a frame of 1001 bytes'));
  assert.deepEqual(found, [7]);
});

test('a split header with too large a size is refused', () => {
  const decoder = new FrameDecoder(1000);
  const header = Buffer.from([0xff, 0xff, 0xff, 0xff, 0]);
  assert.deepEqual(decode(decoder, header.subarray(0, 3)), []);
  assert.throws(() => decode(decoder, header.subarray(3)), FrameError);
});

test('a frame that is too short to name a channel is refused', () => {
  assert.throws(() => decode(new FrameDecoder(1000), Buffer.alloc(5)), new FrameError('an empty frame'));
});

test('a frame that only announces a large size takes no memory', () => {
  const before = process.memoryUsage().arrayBuffers;
  const header = Buffer.alloc(6);
  header.writeUInt32LE(60 * 2 ** 20, 0);
  const decoders = Array.from({ length: 50 }, () => new FrameDecoder(64 * 2 ** 20));
  for (const decoder of decoders) decode(decoder, header);
  assert.ok(process.memoryUsage().arrayBuffers - before < 16 * 2 ** 20);
});

test('a big frame in many pieces is collected in linear time', () => {
  const text = 'x'.repeat(32 * 2 ** 20);
  assertLinear('a big frame', text.length, (length) => {
    const frame = encodeFrame(0, text.slice(0, length));
    const decoder = new FrameDecoder(64 * 2 ** 20);
    let bodyBytes = 0;
    for (let at = 0; at < frame.length; at += 4096) {
      for (const { body } of decoder.push(frame.subarray(at, at + 4096))) bodyBytes += body.length;
    }
    assert.equal(bodyBytes, length + 2);
  });
});
