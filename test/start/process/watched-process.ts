/** A process whose event loop is watched. It stops turning on request, and otherwise writes a line for each message. */
import { watchMainThread } from '#src/start/process/main-watch.ts';

watchMainThread({ lookMs: 50, maxLooks: 10 });
process.on('message', (message) => {
  if (message === 'spin') spinForever();
  if (message === 'sleep') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  process.send?.(message);
});
process.send?.('ready');

function spinForever(): boolean {
  return /^(?:a+)+$/.test(`${'a'.repeat(60)}b`); // exponential
}
