import assert from 'node:assert/strict';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ServerFacts, ServerLoad, ServerStreamEnvelope } from '#src/contract/wire/server.ts';
import { ServerEvents } from '#src/operate/operators/server-events.ts';
import { PublishedStream } from '#src/runtime/events/published-stream.ts';
import { RecordingSink } from '#test/runtime/events/recording-sink.ts';
import { eventually } from '#test/support/processes.ts';

const EVERY_MS = 2;
const NO_FACTS = {} as ServerFacts;
const NO_LOG = { error: () => {} };

const openStream = () =>
  new PublishedStream<ServerStreamEnvelope>({
    replayed: { type: 'server.replayed', data: {} },
    resync: (reason) => ({ type: 'server.resync-required', data: { reason } }),
  });

test('the load is measured once for all followers, and never without followers', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let measured = 0;
  const events = new ServerEvents({
    stream: openStream(),
    facts: () => NO_FACTS,
    log: NO_LOG,
    load: async () => ({ sampledAt: String(++measured) }) as ServerLoad,
    everyMs: EVERY_MS,
  });
  const pass = async (intervals: number) => {
    for (let passed = 0; passed < intervals; passed++) {
      t.mock.timers.tick(EVERY_MS);
      await nextTurn();
    }
  };
  await pass(3);
  assert.equal(measured, 0);
  const sinks = Array.from({ length: 10 }, () => new RecordingSink());
  const subscriptions = sinks.map((sink) => events.follow(sink));
  await nextTurn();
  await pass(2);
  assert.equal(measured, 3);
  for (const { frames } of sinks) {
    const loads = frames.filter(({ event }) => String(event.type) === 'server.load');
    assert.deepEqual(
      loads.map(({ event }) => Object(event.data).sampledAt),
      ['1', '2', '3'],
    );
  }
  for (const subscription of subscriptions) subscription.close();
  await pass(3);
  assert.equal(measured, 3);
  const late = new RecordingSink();
  const again = events.follow(late);
  await nextTurn();
  assert.ok(late.text.includes('server.load'));
  again.close();
  events[Symbol.dispose]();
});

test('an unchanged measurement of the load is not sent again', async () => {
  let asked = 0;
  const events = new ServerEvents({
    stream: openStream(),
    facts: () => NO_FACTS,
    log: NO_LOG,
    load: async () => {
      asked++;
      return { sampledAt: 'the same' } as ServerLoad;
    },
    everyMs: 1,
  });
  const sink = new RecordingSink();
  const subscription = events.follow(sink);
  await eventually('it was asked for several times', () => asked > 3);
  assert.equal(sink.frames.length, 3);
  subscription.close();
  events[Symbol.dispose]();
});

test('a load that cannot be measured is logged once, and measuring continues', async () => {
  let asked = 0;
  const logged: unknown[] = [];
  const events = new ServerEvents({
    stream: openStream(),
    facts: () => NO_FACTS,
    load: async () => {
      if (++asked <= 3) throw new Error(`failure ${asked}`);
      return { sampledAt: String(asked) } as ServerLoad;
    },
    log: { error: ({ err }) => logged.push(String(err)) },
    everyMs: EVERY_MS,
  });
  const sink = new RecordingSink();
  const subscription = events.follow(sink);
  await eventually('the load is measured', () => sink.text.includes('server.load'));
  assert.deepEqual(logged, ['Error: failure 1']);
  subscription.close();
  events[Symbol.dispose]();
});
