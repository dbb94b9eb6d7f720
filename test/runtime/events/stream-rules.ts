import test, { type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Envelope } from '#src/contract/wire/events.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { StreamFollowedElsewhere } from './other-process.ts';
import { RecordingSink, snapshot } from './recording-sink.ts';

type Open = (limitBytes?: number) => SessionStream;

/** Declares a rule for subscribers that are clients of this process, and for those that are clients of another one. */
export function rule(name: string, check: (open: Open, t: TestContext) => void | Promise<void>): void {
  const optionsOf = (limitBytes?: number) => ({
    sessionId: 's',
    ...(limitBytes === undefined ? {} : { limitBytes }),
  });
  test(name, (t) => check((limitBytes) => new SessionStream(optionsOf(limitBytes)), t));
  test(`${name} (in another process)`, (t) =>
    check((limitBytes) => new StreamFollowedElsewhere(optionsOf(limitBytes)), t));
}

/** Resolves when everything that was published in this turn was sent. */
export const delivered = () => Promise.resolve().then(() => setImmediate());

/** Subscribes a client that gets `state` as the state. */
export function subscribe(stream: SessionStream, lastEventId = '', state: readonly Envelope[] = [snapshot]) {
  const sink = new RecordingSink();
  return { sink, subscription: stream.subscribe(sink, { lastEventId, replay: () => state }) };
}

/** Returns a commit that succeeds or fails when the test says so. */
export function commit() {
  let settle: () => void = () => {};
  let fail: (error: Error) => void = () => {};
  const promise = new Promise<void>((resolve, reject) => {
    settle = resolve;
    fail = reject;
  });
  return { promise, settle, fail };
}
