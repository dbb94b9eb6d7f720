import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { ApiError, ConnectionError } from '#src/client/api-error.ts';
import { createClient } from '#src/client/client.ts';
import type { FollowOptions } from '#src/client/event-stream.ts';

type Answer = (response: ServerResponse, request: IncomingMessage) => void;

/** A server whose first connection gets the first answer, and so on; the last one is given again and again. */
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

test('after a cut it goes on behind the last event', async (t) => {
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

test('session.resync-required is given, and followed by a new connection', async (t) => {
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

test('silence is a cut, heartbeats are not silence', async (t) => {
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

test('a server that is gone for a while is waited for, as long as it says', async (t) => {
  const { client, ids } = await serve(
    t,
    stream(frame('1', 'a')),
    problem(503, { 'retry-after': '0' }),
    CLOSED,
  );
  assert.deepEqual(await typesOf(client.followEvents('/e')), ['a', 'session.closed']);
  assert.deepEqual(ids, [undefined, '1', '1']);
});

test('a server that stays away is given up', async (t) => {
  const { client } = await serve(t, stream(frame('1', 'a')), (response) => response.destroy());
  const options: FollowOptions = { giveUpAfterMs: 200 };
  await assert.rejects(typesOf(client.followEvents('/e', options)), ConnectionError);
});

test('what is refused is thrown, on the first connection and on a later one', async (t) => {
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

test('an abort ends it with its reason, while it reads and while it waits', async (t) => {
  const reason = new Error('enough');
  for (const [answers, after] of [
    [[stream(frame('1', 'a'), hold)], 'a'],
    [[stream(frame('1', 'a')), problem(503, { 'retry-after': '30' })], 'a'],
  ] as const) {
    const { client } = await serve(t, ...answers);
    const abort = new AbortController();
    const following = (async () => {
      for await (const { type } of client.followEvents('/e', { signal: abort.signal })) {
        assert.equal(type, after);
        setTimeout(() => abort.abort(reason), 100);
      }
    })();
    await assert.rejects(following, reason);
  }
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

test('a reader that takes its time does not count as silence', async (t) => {
  const { client, ids } = await serve(t, stream(frame('1', 'a') + frame('2', 'session.closed'), hold));
  for await (const _ of client.followEvents('/e', { silenceMs: 300 })) {
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  assert.equal(ids.length, 1);
});

test('a refusal has all that the problem document says', async (t) => {
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

test('an answer that is not ours is a refusal all the same', async (t) => {
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

test('a server that cannot be reached is named with its address and the reason', async (t) => {
  const { server, baseUrl } = await serve(t, hold);
  await new Promise((resolve) => server.close(resolve));
  await assert.rejects(createClient({ baseUrl: `${baseUrl}/` }).health(), {
    name: 'ConnectionError',
    message: `No answer from ${baseUrl}/healthz: connect ECONNREFUSED ${new URL(baseUrl).host}.`,
  });
});

test('a server that wants to be left alone for longer than the client waits is given up at once', async (t) => {
  const { client } = await serve(t, stream(frame('1', 'a')), problem(503, { 'retry-after': '3600' }));
  await assert.rejects(typesOf(client.followEvents('/e')), { status: 503, retryAfter: 3600 });
});
