// own process: it measures the heap
import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { createClient } from '#src/contract/client/client.ts';
import type { FollowOptions } from '#src/contract/client/event-stream.ts';
import { collectFor } from '#test/support/heap.ts';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/**
 * A server that gives its first connection the first answer, and so on. The last answer is given
 * again and again.
 */
async function serve(t: TestContext, ...answers: Answer[]) {
  const ids: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    ids.push(request.headers['last-event-id'] as string | undefined);
    answers[Math.min(ids.length, answers.length) - 1]!(response, request);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { ids, client: createClient({ baseUrl, accessToken: 't', workspaceId: 'w' }), baseUrl, server };
}

function frame(id: string, type: string, data: object = {}): string {
  return `id: ${id}\ndata: ${JSON.stringify({ type, sessionId: 's', data })}\n\n`;
}

const stream =
  (text: string, end: (response: ServerResponse) => void = (response) => response.end()): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text, () => end(response));
  };

const problem =
  (status: number, headers: Record<string, string> = {}): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/problem+json', ...headers });
    response.end(JSON.stringify({ code: 'unavailable', detail: 'Not now.', requestId: 'req_1' }));
  };

const CLOSED = stream(frame('9', 'session.closed', { reason: 'closed' }));
const hold = () => {};

async function typesOf(events: AsyncIterable<{ type: string }>): Promise<string[]> {
  const types: string[] = [];
  for await (const { type } of events) types.push(type);
  return types;
}

test('a stream ends with session.closed', async (t) => {
  const { client, ids } = await serve(t, stream(frame('1', 'a') + frame('2', 'session.closed'), hold));
  assert.deepEqual(await typesOf(client.followEvents('/e')), ['a', 'session.closed']);
  assert.deepEqual(ids, [undefined]);
});

test('after a cut the stream continues after the last event', async (t) => {
  const cut = (response: ServerResponse) => response.destroy();
  const { client, ids } = await serve(
    t,
    stream(`${frame('1', 'a')}${frame('2', 'b')}id: 3\ndata: {"type":`, cut),
    stream(frame('3', 'c')),
    CLOSED,
  );
  assert.deepEqual(await typesOf(client.followEvents('/e')), ['a', 'b', 'c', 'session.closed']);
  assert.deepEqual(ids, [undefined, '2', '3']);
});

test('session.resync-required is yielded, and a new connection follows', async (t) => {
  const { client, ids } = await serve(
    t,
    stream(frame('1.0', 'session.resync-required', { reason: 'slow_subscriber' }), hold),
    CLOSED,
  );
  assert.deepEqual(await typesOf(client.followEvents('/e', { lastEventId: '0' })), [
    'session.resync-required',
    'session.closed',
  ]);
  assert.deepEqual(ids, ['0', '1.0']);
});

const marked = (id: string, type: string, mark: object) =>
  `id: ${id}\ndata: ${JSON.stringify({ type, sessionId: 's', ...mark, data: {} })}\n\n`;

test('on a stream that continues, the reader gets the missed events but not the known state again', async (t) => {
  const { client, ids } = await serve(
    t,
    stream(frame('1', 'a')),
    stream(
      marked('1.0.1', 'session.snapshot', { resumed: true }) +
        marked('2', 'b', { missed: true }) +
        frame('2.0.2', 'cell-op') +
        frame('2.0.3', 'session.replayed') +
        frame('3', 'c'),
    ),
    stream(frame('4.1', 'session.snapshot') + frame('4', 'session.replayed')),
    CLOSED,
  );
  const given: string[] = [];
  const events = client.followEvents('/e', { onEventId: (id) => given.push(id) });
  assert.deepEqual(await typesOf(events), [
    'a',
    'b',
    'c',
    'session.snapshot',
    'session.replayed',
    'session.closed',
  ]);
  assert.deepEqual(ids, [undefined, '1', '3', '4']);
  assert.deepEqual(given, ['1', '2', '3', '4.1', '4', '9']);
});

test('a refusal because the session is closed ends the stream, at once and after a cut', async (t) => {
  const closed: Answer = (response) => response.writeHead(204).end();
  const first = await serve(t, closed);
  assert.deepEqual(await typesOf(first.client.followEvents('/e')), []);
  const later = await serve(t, stream(frame('1', 'a')), closed);
  assert.deepEqual(await typesOf(later.client.followEvents('/e')), ['a']);
  assert.equal(later.ids.length, 2);
});

test('silence counts as a broken connection, and heartbeats count as a sign of life', async (t) => {
  const heartbeats: Answer = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    let beats = 0;
    const timer = setInterval(() => {
      if (++beats < 6) response.write(':\n\n');
      else {
        clearInterval(timer);
        response.write(frame('1', 'a'));
      }
    }, 100);
  };
  const { client, ids } = await serve(t, heartbeats, CLOSED);
  const events = client.followEvents('/e', { silenceMs: 500 });
  assert.deepEqual(await typesOf(events), ['a', 'session.closed']);
  assert.deepEqual(ids, [undefined, '1']);
});

test('the client waits for an absent server as long as the options say', async (t) => {
  const { client, ids } = await serve(
    t,
    stream(frame('1', 'a')),
    problem(503, { 'retry-after': '0' }),
    CLOSED,
  );
  assert.deepEqual(await typesOf(client.followEvents('/e')), ['a', 'session.closed']);
  assert.deepEqual(ids, [undefined, '1', '1']);
});

test('the client gives up when the server stays away', async (t) => {
  const { client } = await serve(t, stream(frame('1', 'a')), (response) => response.destroy());
  const options: FollowOptions = { giveUpAfterMs: 200 };
  await assert.rejects(typesOf(client.followEvents('/e', options)), ConnectionError);
});

test('a stream that was silent before it was lost is continued', async (t) => {
  const { client, ids } = await serve(
    t,
    stream(frame('1', 'a'), (response) => {
      let beats = 0;
      const heartbeat = setInterval(() => {
        if (++beats < 20) response.write(': heartbeat\n\n');
        else response.destroy();
      }, 20);
      response.once('close', () => clearInterval(heartbeat));
    }),
    problem(503),
    CLOSED,
  );
  const options: FollowOptions = { giveUpAfterMs: 200 };
  assert.deepEqual(await typesOf(client.followEvents('/e', options)), ['a', 'session.closed']);
  assert.deepEqual(ids, [undefined, '1', '1']);
});

test('the client gives up when streams repeatedly end without an event', async (t) => {
  const { client } = await serve(t, stream(''));
  await assert.rejects(typesOf(client.followEvents('/e', { giveUpAfterMs: 200 })), ConnectionError);
});

test('a page in place of a stream is refused', async (t) => {
  const { client, ids } = await serve(t, (response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end('<p>Welcome');
  });
  await assert.rejects(typesOf(client.followEvents('/e')), {
    name: 'ApiError',
    code: 'unexpected_response',
  });
  assert.equal(ids.length, 1);
});

test('a refusal is thrown, on the first connection and on a later connection', async (t) => {
  const first = await serve(t, problem(404));
  await assert.rejects(typesOf(first.client.followEvents('/e')), { status: 404, code: 'unavailable' });
  assert.equal(first.ids.length, 1);
  const later = await serve(t, stream(frame('1', 'a')), problem(401));
  await assert.rejects(typesOf(later.client.followEvents('/e')), { status: 401 });
});

test('a first connection that fails is not tried again', async (t) => {
  const { client, ids } = await serve(t, (response) => response.destroy());
  await assert.rejects(typesOf(client.followEvents('/e')), ConnectionError);
  assert.equal(ids.length, 1);
});

test("an abort ends the stream with the signal's reason, while reading and while waiting", async (t) => {
  const reason = new Error('enough');
  for (const answers of [
    [stream(frame('1', 'a'), hold)],
    [stream(frame('1', 'a')), problem(503, { 'retry-after': '30' }), problem(404)],
  ]) {
    const { client, ids } = await serve(t, ...answers);
    const abort = new AbortController();
    const events = client.followEvents('/e', { signal: abort.signal });
    assert.equal((await events.next()).value?.type, 'a');
    const next = events.next();
    if (answers.length > 1) {
      while (ids.length < 2) await new Promise(setImmediate);
      await assert.rejects(client.health(), { status: 404 }); // the 404 comes after the 503, so the client waits by now
    }
    abort.abort(reason);
    await assert.rejects(next, reason);
  }
});

test('a timeout signal that only the options refer to ends the stream, even after a garbage collection', async (t) => {
  const { client } = await serve(t, stream(frame('1', 'a'), hold));
  const events = client.followEvents('/e', { signal: AbortSignal.timeout(200) });
  assert.equal((await events.next()).value?.type, 'a');
  const next = events.next();
  next.catch(() => {}); // it rejects below
  await collectFor(400);
  await assert.rejects(next, { name: 'TimeoutError' });
});

test('leaving the loop closes the connection', async (t) => {
  let left: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    left = resolve;
  });
  const { client } = await serve(t, (response, request) => {
    request.on('close', left);
    stream(frame('1', 'a'), hold)(response, request);
  });
  for await (const { type } of client.followEvents('/e')) {
    assert.equal(type, 'a');
    break;
  }
  await closed;
});

test('a slow reader does not count as silence', async (t) => {
  const { client, ids } = await serve(t, stream(frame('1', 'a') + frame('2', 'session.closed'), hold));
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const types: string[] = [];
  for await (const { type } of client.followEvents('/e', { silenceMs: 10_000 })) {
    t.mock.timers.tick(20_000);
    types.push(type);
  }
  assert.deepEqual([types, ids.length], [['a', 'session.closed'], 1]);
});

test('a refusal has all members of the problem document', async (t) => {
  const { client } = await serve(t, (response) => {
    response.writeHead(429, { 'retry-after': '7', 'content-type': 'application/problem+json' });
    const errors = [{ path: '/a', message: 'is wrong' }];
    response.end(
      JSON.stringify({ code: 'quota_exceeded', detail: 'Too much.', requestId: 'r', errors, more: 1 }),
    );
  });
  const error = await client.health().catch((failure: unknown) => failure);
  assert.ok(error instanceof ApiError);
  const { status, code, detail, requestId, errors, retryAfter, body } = error;
  assert.deepEqual(
    { status, code, detail, requestId, errors, retryAfter, more: (body as { more: number }).more },
    {
      status: 429,
      code: 'quota_exceeded',
      detail: 'Too much.',
      requestId: 'r',
      errors: [{ path: '/a', message: 'is wrong' }],
      retryAfter: 7,
      more: 1,
    },
  );
});

test('an error response without a problem document is also a refusal', async (t) => {
  const { client } = await serve(t, (response) => {
    response.writeHead(502, { 'content-type': 'text/html', 'x-request-id': 'proxy-1' });
    response.end('<h1>Bad gateway</h1>');
  });
  await assert.rejects(client.notebooks.get('a b/c'), {
    name: 'ApiError',
    status: 502,
    code: 'unexpected_response',
    requestId: 'proxy-1',
    body: '<h1>Bad gateway</h1>',
  });
});

test('the error for an unreachable server names its address and the reason', async (t) => {
  const { server, baseUrl } = await serve(t, hold);
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(createClient({ baseUrl: `${baseUrl}/` }).health(), {
    name: 'ConnectionError',
    message: `No answer from ${baseUrl}/healthz: connect ECONNREFUSED ${new URL(baseUrl).host}.`,
  });
});

test('the client gives up at once when the server asks for a longer pause than it waits', async (t) => {
  const { client } = await serve(t, stream(frame('1', 'a')), problem(503, { 'retry-after': '3600' }));
  await assert.rejects(typesOf(client.followEvents('/e')), { status: 503, retryAfter: 3600 });
});
