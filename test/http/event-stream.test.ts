import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { stream as streamReply } from '#src/http/reply/reply.ts';
import { defineRoute } from '#src/http/route.ts';
import { SessionStream } from '#src/runtime/events/session-stream.ts';
import { parseFrames, snapshot, text } from '#test/runtime/events/recording-sink.ts';
import { GOOD, RawConnection, send, serve } from './test-server.ts';

async function serveStream(t: TestContext, limitBytes?: number) {
  const stream = new SessionStream({ sessionId: 's', ...(limitBytes === undefined ? {} : { limitBytes }) });
  const server = await serve(t, [
    defineRoute({
      method: 'GET',
      path: '/sessions/:sessionId/events',
      operationId: 'streamEvents',
      summary: 's',
      tags: [],
      access: { action: 'thing.use' },
      headers: { 'last-event-id': 'Where to go on.' },
      responses: { 200: { description: 'd', contentType: 'text/event-stream' } },
      handle: ({ headers }) =>
        streamReply((sink) =>
          stream.subscribe(sink, { lastEventId: headers['last-event-id'], replay: () => [snapshot] }),
        ),
    }),
  ]);
  const connect = (extra = '') => {
    const raw = new RawConnection(server);
    const head = Object.entries(GOOD).map(([name, value]) => `${name}: ${value}\r\n`);
    raw.write(`GET /sessions/s/events HTTP/1.1\r\nHost: x\r\n${head.join('')}${extra}\r\n`);
    return raw;
  };
  return { stream, server, connect };
}

/** The part of a chunked answer's body that has arrived. */
function bodyOf(raw: RawConnection): string {
  let rest = raw.text.slice(raw.text.indexOf('\r\n\r\n') + 4);
  let body = '';
  for (;;) {
    const line = rest.indexOf('\r\n');
    const length = Number.parseInt(rest.slice(0, line), 16);
    if (line < 0 || !(length > 0)) return body;
    body += rest.slice(line + 2, line + 2 + length);
    rest = rest.slice(line + 2 + length + 2);
  }
}

const eventsOf = (raw: RawConnection) => parseFrames(bodyOf(raw)).map(({ event }) => event);

test('a stream opens at once with its headers, a comment and the state', async (t) => {
  const { connect, stream } = await serveStream(t);
  const raw = connect('X-Request-Id: mine\r\n');
  await raw.until((sent) => sent.includes('session.replayed'));
  const head = raw.text.slice(0, raw.text.indexOf('\r\n\r\n')).toLowerCase();
  const headers = head
    .split('\r\n')
    .filter((line) => !/^(date|uwebsockets|content-security|cross-origin|referrer)/.test(line));
  assert.deepEqual(headers.sort(), [
    'cache-control: no-cache, no-transform',
    'content-type: text/event-stream',
    'http/1.1 200 ok',
    'transfer-encoding: chunked',
    'x-accel-buffering: no',
    'x-content-type-options: nosniff',
    'x-request-id: mine',
  ]);
  assert.match(bodyOf(raw), /^retry: [12]\d{3}\nid: /);
  stream.publish(text('live'));
  await raw.until((sent) => sent.includes('"live"'));
  assert.deepEqual(eventsOf(raw), [
    snapshot,
    { type: 'session.replayed', sessionId: 's', data: {} },
    text('live'),
  ]);
  raw.leave();
});

test('a client stops being a subscriber when it leaves', async (t) => {
  const { connect, stream } = await serveStream(t);
  const left = new Promise<void>((resolve) => stream.onEmpty(resolve));
  const raw = connect();
  await raw.until((sent) => sent.includes('session.replayed'));
  assert.equal(stream.subscriberCount, 1);
  raw.leave();
  await left;
  assert.equal(stream.subscriberCount, 0);
});

test('a returning client gets the snapshot, the missed events, and the end of the replay', async (t) => {
  const { connect, stream } = await serveStream(t);
  const first = connect();
  await first.until((sent) => sent.includes('session.replayed'));
  stream.publish(text('1'));
  stream.publish(text('2'));
  stream.publish(text('3'));
  await first.until((sent) => sent.includes('"3"'));
  const { id } = parseFrames(bodyOf(first))[2]!;
  first.leave();
  const second = connect(`Last-Event-ID: ${id}\r\n`);
  await second.until((sent) => sent.includes('session.replayed'));
  assert.deepEqual(eventsOf(second), [
    { ...snapshot, resumed: true },
    { ...text('2'), missed: true },
    { ...text('3'), missed: true },
    { type: 'session.replayed', sessionId: 's', data: {} },
  ]);
  second.leave();
});

test('an ended stream ends its connections after the last event', async (t) => {
  const { connect, stream } = await serveStream(t);
  const raw = connect();
  await raw.until((sent) => sent.includes('session.replayed'));
  stream.end({ type: 'session.closed', sessionId: 's', data: { reason: 'closed' } });
  await raw.until((sent) => sent.endsWith('\r\n0\r\n\r\n'));
  assert.deepEqual(eventsOf(raw).at(-1), {
    type: 'session.closed',
    sessionId: 's',
    data: { reason: 'closed' },
  });
  raw.leave();
});

test('HEAD of a stream returns its headers, and opens nothing', async (t) => {
  const { server, stream } = await serveStream(t);
  const head = await send(server, '/sessions/s/events', { method: 'HEAD' });
  assert.deepEqual(
    [head.status, head.headers['content-type'], stream.subscriberCount],
    [200, 'text/event-stream', 0],
  );
});

test('a stalled client is cut off, and a healthy one gets every byte of a burst', async (t) => {
  const { connect, stream } = await serveStream(t);
  const stalled = connect();
  const healthy = connect();
  for (const raw of [stalled, healthy]) await raw.until((sent) => sent.includes('session.replayed'));
  stalled.socket.pause();

  let paused = false;
  let resume: () => void = () => {};
  stream.onPressure((now) => {
    paused = now;
    if (!paused) resume();
  });
  const piece = 'x'.repeat(32 * 1024);
  const pieces = 640;
  for (let i = 0; i < pieces; i++) {
    stream.publish({ ...text(piece), runId: `r${i}` });
    await new Promise<void>((resolve) => {
      if (paused) resume = resolve;
      else setImmediate(resolve);
    });
  }
  await healthy.until((sent) => sent.includes(`"r${pieces - 1}"`));
  const events = eventsOf(healthy).slice(2);
  assert.equal(events.length, pieces);
  assert.ok(
    events.every(
      (event, i) => event.runId === `r${i}` && event.type === 'console-output' && event.data.text === piece,
    ),
  );
  assert.equal(stream.subscriberCount, 1);

  stalled.socket.resume();
  await stalled.until((sent) => sent.endsWith('\r\n0\r\n\r\n'));
  const seen = eventsOf(stalled).slice(2);
  assert.deepEqual(seen.pop(), {
    type: 'session.resync-required',
    sessionId: 's',
    data: { reason: 'slow_subscriber' },
  });
  assert.deepEqual(
    seen.map((event) => event.runId),
    seen.map((_, i) => `r${i}`),
  );
  assert.ok(seen.length < pieces);
  for (const raw of [stalled, healthy]) raw.leave();
});

test('a replay larger than every buffer arrives whole', async (t) => {
  const state = [
    snapshot,
    ...Array.from({ length: 120 }, (_, i) => ({ ...text('x'.repeat(50_000)), runId: `r${i}` })),
  ];
  const stream = new SessionStream({ sessionId: 's' });
  const server = await serve(t, [
    defineRoute({
      method: 'GET',
      path: '/events',
      operationId: 'e',
      summary: 's',
      tags: [],
      access: 'public',
      responses: { 200: { description: 'd' } },
      handle: async () => streamReply((sink) => stream.subscribe(sink, { replay: () => state })),
    }),
  ]);
  const raw = new RawConnection(server);
  raw.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  await raw.until((sent) => sent.includes('session.replayed'));
  assert.deepEqual(eventsOf(raw), [...state, { type: 'session.replayed', sessionId: 's', data: {} }]);
  raw.leave();
});

test('a frame larger than every buffer arrives whole, even if the reader pauses', async (t) => {
  const { connect, stream } = await serveStream(t, 64 * 1024 * 1024);
  const raw = connect();
  await raw.until((sent) => sent.includes('session.replayed'));
  const large = [text('x'.repeat(12_000_000)), text('y'.repeat(3_000_000)), text('small')];
  for (const event of large) stream.publish(event);
  raw.socket.pause();
  await new Promise((resolve) => setTimeout(resolve, 100)); // meanwhile its connection is full
  raw.socket.resume();
  await raw.until((sent) => sent.includes('"small"'));
  assert.deepEqual(eventsOf(raw).slice(2), large);
  raw.leave();
});

test('all streams of a caller can be ended, as when a token is revoked', async (t) => {
  const { connect, server, stream } = await serveStream(t);
  const raw = connect();
  await raw.until((sent) => sent.includes('session.replayed'));
  server.open.endStreams((caller) => caller?.userId === 'somebody else');
  assert.equal(stream.subscriberCount, 1);
  server.open.endStreams((caller) => caller?.userId === 'ada');
  await raw.until((sent) => sent.endsWith('\r\n0\r\n\r\n'));
  assert.equal(stream.subscriberCount, 0);
  raw.leave();
});

test('a caller that cannot be checked loses the stream, and the callers after it are checked', async (t) => {
  const { connect, server, stream } = await serveStream(t);
  const readers = [connect(), connect()];
  for (const raw of readers) await raw.until((sent) => sent.includes('session.replayed'));
  let checks = 0;
  server.open.endStreams(() => {
    if (++checks === 1) throw new Error('the record of the caller is damaged');
    return false;
  });
  assert.deepEqual([checks, stream.subscriberCount, server.logged.length], [2, 1, 1]);
  for (const raw of readers) raw.leave();
});
