/** The calls that the client makes of the table of operations, by the requests that they send. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from '#src/contract/client/client.ts';

interface Sent {
  readonly request: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Returns a client whose requests are kept and answered with these values, one after the other, and the requests. */
function clientOn(...answers: readonly object[]) {
  const sent: Sent[] = [];
  const client = createClient({
    baseUrl: 'http://server.test',
    fetch: async (url, init) => {
      const address = new URL(String(url));
      sent.push({
        request: `${init?.method} ${address.pathname}${address.search}`,
        headers: new Headers(init?.headers),
        body: init?.body,
      });
      return Response.json(answers[sent.length - 1] ?? {}, { headers: { etag: '"one"' } });
    },
  });
  return { client, sent };
}

test('the arguments of a derived call fill the path in their order, percent-encoded', async () => {
  const { client, sent } = clientOn();
  await client.accessTokens.get('a/b c');
  await client.runs.deleteAsset('run', 'asset?');
  await client.agentSessions.revoke('conversation', 'ada@example.org');
  assert.deepEqual(
    sent.map(({ request }) => request),
    [
      'GET /api/v3/access-tokens/a%2Fb%20c',
      'DELETE /api/v3/runs/run/assets/asset%3F',
      'DELETE /api/v3/agent-sessions/conversation/grants/ada%40example.org',
    ],
  );
});

test('a derived call sends its options as headers, and no body', async () => {
  const { client, sent } = clientOn();
  await client.runs.cancel('run', { idempotencyKey: 'key' });
  await client.members.delete('ada', { ifMatch: '"state"' });
  await client.executionEnvironments.create();
  assert.deepEqual(
    sent.map(({ body }) => body),
    [undefined, undefined, undefined],
  );
  assert.equal(sent[0]?.headers.get('idempotency-key'), 'key');
  assert.equal(sent[1]?.headers.get('if-match'), '"state"');
  assert.equal(sent[2]?.headers.get('content-type'), null);
});

test('a derived call that reads a state resolves with its entity tag', async () => {
  const { client, sent } = clientOn({ userId: 'ada' });
  const { etag, value } = await client.members.getTagged('ada', { ifNoneMatch: '"old"' });
  assert.deepEqual([etag, value?.userId], ['"one"', 'ada']);
  assert.equal(sent[0]?.headers.get('if-none-match'), '"old"');
});

test('a page of a derived list has the filters in its query, without the signal', async () => {
  const { client, sent } = clientOn({ items: [], nextCursor: null });
  const { signal } = new AbortController();
  await client.executions.list('session', { limit: 5, include: 'none', signal });
  assert.deepEqual(
    sent.map(({ request }) => request),
    ['GET /api/v3/notebook-sessions/session/executions?limit=5&include=none'],
  );
});

test('a derived list yields the items of all pages, and requests each page after the previous page', async () => {
  const pages = [
    { items: [{ id: 'a' }, { id: 'b' }], nextCursor: 'b' },
    { items: [], nextCursor: 'c' },
    { items: [{ id: 'd' }], nextCursor: null },
  ];
  const { client, sent } = clientOn(...pages);
  const ids: string[] = [];
  for await (const { id } of client.runs.each({ after: 'first', status: ['failed'] })) {
    ids.push(id);
    if (id === 'b') assert.equal(sent.length, 1, 'the next page is requested when it is needed');
  }
  assert.deepEqual(ids, ['a', 'b', 'd']);
  assert.deepEqual(
    sent.map(({ request }) => request),
    [
      'GET /api/v3/runs?after=first&status=failed',
      'GET /api/v3/runs?after=b&status=failed',
      'GET /api/v3/runs?after=c&status=failed',
    ],
  );
});
