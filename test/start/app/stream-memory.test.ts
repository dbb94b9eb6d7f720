import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import type { SessionId } from '#src/base/ids.ts';
import { ServerMetrics } from '#src/base/metrics/server-metrics.ts';
import { ActorRuntime } from '#src/runtime/actors/runtime.ts';
import { ALONE } from '#src/runtime/homes/cluster.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { openStreams } from '#src/start/app/open-streams.ts';
import { RecordingSink, snapshot, text } from '#test/runtime/events/recording-sink.ts';
import { rememberingLog, temporaryStore } from '#test/support/store/temporary-store.ts';
import { testContext } from '#test/support/test-context.ts';

const EVENT = text('x'.repeat(100 * 1024));

/**
 * Publishes to subscribers that read nothing until they use six tenths of a memory of 1 MiB.
 * Resolves with whether they were cut off.
 */
async function isCutOff(t: TestContext, workers: number): Promise<boolean> {
  const { store } = await temporaryStore(t);
  const stack = new AsyncDisposableStack();
  t.after(() => stack[Symbol.asyncDispose]());
  const metrics = new ServerMetrics();
  const { makeStream } = openStreams(
    testContext<PlaneContext>({
      config: { heartbeatS: 60, streamMemoryMb: 1, subscriberBufferBytes: 64 * 1024 * 1024 },
      cluster: { ...ALONE, size: workers },
      runtime: new ActorRuntime(store, rememberingLog().log, metrics),
      store,
      metrics,
    }),
    stack,
  );
  const stream = makeStream('nb_1' as SessionId);
  const [stalled, reader] = [new RecordingSink(), new RecordingSink()];
  for (const sink of [stalled, reader]) stream.subscribe(sink, { replay: () => [snapshot] });
  stalled.open = false;
  for (let n = 0; n < 6; n++) stream.publish(EVENT);
  // Large events are encoded in slices.
  while (reader.frames.length < 8) await new Promise(setImmediate);
  assert.equal(reader.ended, false);
  return stalled.ended;
}

test('each of several workers has an equal share of the memory for unread events', async (t) => {
  assert.equal(await isCutOff(t, 1), false);
  assert.equal(await isCutOff(t, 2), true);
});
