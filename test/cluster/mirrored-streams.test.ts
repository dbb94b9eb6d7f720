/** Event streams that are at home in one worker and followed at another one, over TCP and a unix socket. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { StreamQuery } from '#src/contract/wire/operations/parts.ts';
import { streamRequestOf } from '#src/http/handlers/event-streams.ts';
import { stream } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import type { Server } from '#src/http/server.ts';
import { Heartbeats } from '#src/runtime/events/heartbeats.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { closed, parseFrames, snapshot, text } from '#test/runtime/events/recording-sink.ts';
import { eventually } from '#test/support/processes.ts';
import { SeededRandom } from '#test/support/random.ts';
import { openStream, type RawStream } from '#test/support/raw-stream.ts';
import { startTwoWorkers } from './two-workers.ts';

const PATH = '/sessions/s/events';

/** A worker's end of the stream. Each worker has an object of its own, as if the session lived in both. */
async function start(t: TestContext, options: Parameters<typeof startTwoWorkers>[2] = {}) {
  const { limitBytes } = options;
  const limits = limitBytes === undefined ? {} : { limitBytes };
  const streams = [0, 1].map(() => new SessionStream({ sessionId: 's', ...limits }));
  const cluster = await startTwoWorkers(
    t,
    (worker) => [
      defineRoute({
        method: 'GET',
        path: '/sessions/:sessionId/events',
        operationId: 'getEvents',
        summary: 's',
        tags: ['Things'],
        access: { action: 'thing.use' },
        query: StreamQuery,
        headers: { 'last-event-id': 'd' },
        responses: { 200: { description: 'd', contentType: 'text/event-stream' } },
        handle: ({ headers, query }) => {
          const { lastEventId, observe: observes } = streamRequestOf(headers, query);
          return stream((sink) =>
            streams[worker]!.subscribe(sink, { lastEventId, observes, replay: () => [snapshot] }),
          );
        },
      }),
    ],
    options,
  );
  const owner = { token: 'good', workspaceId: cluster.workspaceIn(1, 's') };
  const follow = (worker: 0 | 1, headers: Readonly<Record<string, string>> = {}, path = PATH) => {
    const baseUrl = `http://127.0.0.1:${cluster.servers[worker].port}`;
    return openStream({ baseUrl, owner }, path, headers);
  };
  return { ...cluster, follow, streams, home: streams[1]! };
}

/** Returns the ids and events that were sent after the subscriber had caught up. */
function live(raw: RawStream): unknown[] {
  const frames = parseFrames(raw.text);
  return frames.slice(frames.findIndex(({ event }) => event.type === 'session.replayed') + 1);
}

const untilReplayed = (streams: readonly RawStream[]) =>
  Promise.all(streams.map((one) => one.until('session.replayed')));

/** Nothing of a stream is left in either worker. */
async function nothingIsLeft({ servers, peers, home }: Awaited<ReturnType<typeof start>>): Promise<void> {
  await eventually('nobody follows', () => home.subscriberCount === 0);
  await eventually('no stream is mirrored', () => peers[0].mirrorCount === 0);
  const isIdle = (server: Server) => server.open.load().streams + server.open.load().requests === 0;
  await eventually('no stream is open', () => servers.every(isIdle));
}

test('clients of all workers get the same events in the same order', async (t) => {
  const { follow, home, peers } = await start(t);
  const clients = await Promise.all(([0, 0, 0, 1, 1, 1] as const).map((worker) => follow(worker)));
  await untilReplayed(clients);
  for (let i = 0; i < 300; i++) {
    home.publish(text(i % 7 === 0 ? 'x'.repeat(100_000) : `${i}`));
    if (i % 10 === 0) await new Promise(setImmediate);
  }
  home.publish(text('last'));
  await Promise.all(clients.map((client) => client.until('"text":"last"')));
  const [first, ...others] = clients.map(live);
  assert.equal(first!.length, 301);
  for (const other of others) assert.deepEqual(other, first);
  assert.deepEqual([peers[0].mirrorCount, home.subscriberCount], [1, 4]);
});

test('a client continues at another worker, which sends it the missed events', async (t) => {
  const { follow, home } = await start(t);
  const [here, there] = await Promise.all([follow(1), follow(0)]);
  await untilReplayed([here, there]);
  for (let i = 0; i < 20; i++) home.publish(text(`word ${i}`));
  await Promise.all([here.until('word 19'), there.until('word 19')]);
  const ids = parseFrames(there.text).map(({ id }) => id);
  there.close();
  const later = await Promise.all(
    ([0, 1] as const).map((worker) => follow(worker, { 'last-event-id': ids[11]! })),
  );
  await untilReplayed(later);
  home.publish(text('live'));
  await Promise.all(later.map((client) => client.until('live')));
  const [elsewhere, atHome] = later.map(({ text }) =>
    parseFrames(text).map(({ id, event }) => ({ id, event })),
  );
  assert.deepEqual(elsewhere, atHome);
  const missed = elsewhere!.filter(({ event }) => 'missed' in event);
  assert.deepEqual(
    missed.map(({ id }) => id),
    ids.slice(12),
  );
});

test('a client that stops reading is cut off by its own worker, and delays nobody', async (t) => {
  const { follow, home, mirrors } = await start(t, { limitBytes: 256 * 1024 });
  const [stopped, reader, here] = await Promise.all([follow(0), follow(0), follow(1)]);
  await untilReplayed([stopped, reader, here]);
  await eventually('both are on the mirror', () => mirrors[0]?.subscriberCount === 2);
  stopped.pause();
  let sent = 0;
  // The system buffers some megabytes that a client does not read.
  for (; mirrors[0]!.subscriberCount === 2; sent++) {
    assert.ok(sent < 2_000);
    home.publish(text(`${sent}:${'x'.repeat(32 * 1024)}`));
    await Promise.all([reader.until(`"${sent}:`), here.until(`"${sent}:`)]);
  }
  stopped.resume();
  await stopped.ended;
  assert.match(stopped.text, /session\.resync-required.*slow_subscriber/);
  await eventually('the home knows', () => home.subscriberCount === 2);
  home.publish(text('last'));
  await Promise.all([reader.until('last'), here.until('last')]);
  assert.deepEqual(live(reader), live(here));
});

test('when the home ends, its mirrored streams end, and clients find the next home', async (t) => {
  const { follow, streams, peers, mirrors, giveAllTo } = await start(t);
  const before = await follow(0);
  await before.until('session.replayed');
  streams[1]!.publish(text('before'));
  await before.until('before');
  peers[1][Symbol.dispose]();
  await before.ended;
  assert.equal(peers[0].mirrorCount, 0);
  assert.equal(mirrors[0]!.subscriberCount, 0);
  giveAllTo(0, [0]);
  const after = await follow(0, { 'last-event-id': before.lastEventId });
  await after.until('session.replayed');
  streams[0]!.publish(text('after'));
  await after.until('after');
  assert.deepEqual(
    parseFrames(after.text).map(({ event }) => event.type),
    ['session.snapshot', 'session.replayed', 'console-output'],
  );
});

test('a client that subscribes while the slot moves follows the stream at the new home', async (t) => {
  const { follow, streams, giveAllTo } = await start(t);
  giveAllTo(0, [1]); // the first worker still sends requests to the second one
  const following = follow(0);
  await new Promise(setImmediate);
  giveAllTo(0);
  const client = await following;
  await client.until('session.replayed');
  streams[0]!.publish(text('here'));
  await client.until('here');
});

test('the end of a session ends its streams in every worker, after the last event', async (t) => {
  const cluster = await start(t);
  const clients = await Promise.all([cluster.follow(0), cluster.follow(1)]);
  await untilReplayed(clients);
  cluster.home.publish(text('last words'));
  cluster.home.end(closed);
  await Promise.all(clients.map(({ ended }) => ended));
  for (const client of clients) {
    const types = parseFrames(client.text).map(({ event }) => event.type);
    assert.deepEqual(types.slice(-2), ['console-output', 'session.closed']);
    assert.ok(client.isComplete);
  }
  await nothingIsLeft(cluster);
});

test('a stopping server asks clients of all workers to connect again', async (t) => {
  const cluster = await start(t);
  const clients = await Promise.all([cluster.follow(0), cluster.follow(1)]);
  await untilReplayed(clients);
  cluster.home.resync('server_stopping');
  await Promise.all(clients.map(({ ended }) => ended));
  for (const client of clients) assert.match(client.text, /session\.resync-required.*server_stopping/);
  await nothingIsLeft(cluster);
});

test('when a single worker ends, it asks the clients of its mirrored streams to connect again', async (t) => {
  const { follow, servers, home, mirrors } = await start(t);
  const [elsewhere, here] = await Promise.all([follow(0), follow(1)]);
  await untilReplayed([elsewhere, here]);
  await eventually('it is on the mirror', () => mirrors[0]?.subscriberCount === 1);
  await servers[0].close(0);
  await elsewhere.ended;
  assert.match(elsewhere.text, /session\.resync-required.*server_stopping/);
  home.publish(text('goes on'));
  await here.until('goes on');
  await eventually('the home knows', () => home.subscriberCount === 1);
});

test('streams of a caller that has lost the right to follow end in every worker', async (t) => {
  const cluster = await start(t);
  const clients = await Promise.all([cluster.follow(0), cluster.follow(0), cluster.follow(1)]);
  await untilReplayed(clients);
  await eventually('they are on the mirror', () => cluster.mirrors[0]?.subscriberCount === 2);
  cluster.servers[1].open.endStreams(() => true);
  await Promise.all(clients.map(({ ended }) => ended));
  cluster.home.publish(text('secret'));
  assert.ok(clients.every((client) => client.isComplete && !client.text.includes('secret')));
  await nothingIsLeft(cluster);
});

test('streams of a caller that has lost the right to follow also end in a worker that does not listen for clients yet', async (t) => {
  let met = false;
  await start(t, {
    beforeListening: async ({ first, open, workspaceIn }) => {
      const owner = { token: 'good', workspaceId: workspaceIn(1, 's') };
      const client = await openStream({ baseUrl: `http://127.0.0.1:${first.port}`, owner }, PATH);
      await client.until('session.replayed');
      assert.equal(open.load().streams, 1);
      open.endStreams(() => true);
      await client.ended;
      met = true;
    },
  });
  assert.ok(met);
});

test('the limit of streams counts each mirrored stream once', async (t) => {
  const cluster = await start(t, { streamsPerWorkspace: () => 3 });
  const clients = await Promise.all([cluster.follow(0), cluster.follow(0), cluster.follow(1)]);
  await untilReplayed(clients);
  for (const worker of [0, 1] as const) {
    const refused = await cluster.follow(worker);
    assert.equal(refused.status, 429);
  }
  assert.equal(cluster.servers[1].open.load().streams, 3);
  clients[0]!.close();
  await eventually('one has left', () => cluster.servers[1].open.load().streams === 2);
  const next = await cluster.follow(0);
  assert.equal(next.status, 200);
});

test('a mirrored stream is kept alive by heartbeats', async (t) => {
  const heartbeats = new Heartbeats(80);
  const { follow } = await start(t, { heartbeats });
  const client = await follow(0);
  await client.until('session.replayed');
  await client.untilText((all) => all.slice(all.indexOf('session.replayed')).includes('\n\n:\n:\n'));
});

test('a storm of connecting and leaving clients leaves nothing behind', async (t) => {
  const cluster = await start(t);
  const random = new SeededRandom(7);
  let isOver = false;
  const publishing = (async () => {
    for (let i = 0; !isOver; i++) {
      cluster.home.publish(text(`${i}`));
      await new Promise((resolve) => setTimeout(resolve, 1)); // a pace, so that the clients come and go meanwhile
    }
  })();
  const comeAndGo = async () => {
    for (let i = 0; i < 12; i++) {
      const worker = random.pick([0, 0, 1] as const);
      const client = await cluster.follow(worker, {}, random.is(0.3) ? `${PATH}?observe=true` : PATH);
      if (random.is(0.7)) await client.until('console-output');
      client.close();
    }
  };
  await Promise.all(Array.from({ length: 20 }, comeAndGo));
  isOver = true;
  await publishing;
  await nothingIsLeft(cluster);
  assert.ok(cluster.mirrors.length > 0);
  for (const mirror of cluster.mirrors) assert.equal(mirror.subscriberCount, 0);
});
