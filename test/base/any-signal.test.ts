// own process: it collects garbage
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anySignal } from '#src/base/async/any-signal.ts';
import { collectFor } from '#test/support/heap.ts';
import { eventually } from '#test/support/processes.ts';

test('a timeout aborts the combined signal that contains it, although nothing else refers to the timeout', async () => {
  const reasons: unknown[] = [];
  const listen = (signal: AbortSignal) => signal.addEventListener('abort', () => reasons.push(signal.reason));
  listen(anySignal(new AbortController().signal, AbortSignal.timeout(100)));
  listen(
    anySignal(
      anySignal(new AbortController().signal, AbortSignal.timeout(100)),
      new AbortController().signal,
    ),
  );
  const held = anySignal(new AbortController().signal, AbortSignal.timeout(100));
  await eventually('all have aborted', async () => {
    await collectFor(20);
    return reasons.length === 2 && held.aborted;
  });
  assert.deepEqual(
    reasons.map((reason) => (reason as Error).name),
    ['TimeoutError', 'TimeoutError'],
  );
});

test('a combined signal aborts with the reason of the first aborted signal, also when this signal was aborted before', () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const both = anySignal(first.signal, second.signal);
  assert.equal(both.aborted, false);
  second.abort('second');
  first.abort('first');
  assert.equal(both.reason, 'second');
  assert.equal(anySignal(first.signal, second.signal).reason, 'first');
});

test('combined signals that nobody uses any more are collected, although one of their signals lives on', async () => {
  const long = new AbortController();
  const made = Array.from(
    { length: 100 },
    () => new WeakRef(anySignal(long.signal, AbortSignal.timeout(60_000))),
  );
  await eventually('all are collected', async () => {
    await collectFor(20);
    return made.every((one) => one.deref() === undefined);
  });
});
