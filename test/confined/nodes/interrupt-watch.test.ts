import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InterruptWatch } from '#src/confined/nodes/host/interrupt-watch.ts';
import { encodeFrame } from '#src/confined/processes/frame-decoder.ts';
import { followFrame, interruptFrame } from '#src/confined/processes/kernel/kernel-commands.ts';

test('interrupts are found at their last byte, even if their bytes are split at any place', () => {
  const command = encodeFrame(1, { text: Buffer.from(interruptFrame(7)).toString('latin1') });
  const frames = [
    command,
    interruptFrame(1),
    followFrame(3),
    interruptFrame(0x04040404),
    command,
    interruptFrame(2),
  ];
  const bytes = Buffer.concat(frames);
  const ends: number[] = [];
  let end = 0;
  for (const frame of frames) {
    end += frame.length;
    if (frame.length === interruptFrame(1).length && frame[4] === interruptFrame(1)[4]) ends.push(end);
  }
  assert.equal(ends.length, 3);
  for (const size of [1, 2, 3, 5, 7, 11, bytes.length]) {
    const watch = new InterruptWatch();
    for (let at = 0; at < bytes.length; at += size) {
      const expected = ends.filter((one) => one > at && one <= at + size).length;
      assert.equal(watch.push(bytes.subarray(at, at + size)), expected, `${size} bytes at ${at}`);
    }
  }
});
