import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test, { type TestContext } from 'node:test';
import { createClient } from '#src/contract/client/client.ts';

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** A server that gives each request the same answer, and a client of it. `seen` are the requests. */
async function serve(t: TestContext, { status, headers, body }: Answer) {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url}`);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { seen, baseUrl, client: createClient({ baseUrl, accessToken: 't', workspaceId: 'w' }) };
}

for (const status of [301, 302, 307, 308]) {
  test(`a request does not follow a ${status}, and the error names the target`, async (t) => {
    const other = await serve(t, { status: 200, headers: {}, body: '{"items": []}' });
    const location = `${other.baseUrl}/api/v3/datasources`;
    const { client, baseUrl } = await serve(t, { status, headers: { location } });
    const connection = { kind: 'postgres', password: 'hunter2' };
    await assert.rejects(client.datasources.create({ slug: 'sales', connection }), {
      name: 'ApiError',
      status,
      code: 'unexpected_response',
      message: `The answer of ${baseUrl}/api/v3/datasources redirects to ${location}, which is not followed. Is this a Troupe server?`,
    });
    assert.deepEqual(other.seen, []);
  });
}

test('a page in place of JSON is refused, and the error names its URL', async (t) => {
  const answer = { status: 200, headers: { 'content-type': 'text/html' }, body: '<p>Welcome' };
  const { client, baseUrl } = await serve(t, answer);
  await assert.rejects(client.notebooks.list(), {
    name: 'ApiError',
    code: 'unexpected_response',
    message: `The answer of ${baseUrl}/api/v3/notebooks is not JSON. Is this a Troupe server?`,
  });
});

test('a token that no header can carry is refused without being shown', () => {
  for (const accessToken of ['secret\nsecret', 'secret”'])
    assert.throws(() => createClient({ baseUrl: 'http://127.0.0.1:1', accessToken }), {
      name: 'TypeError',
      message: 'The access token has an invalid character.',
    });
});

test('a path with a segment that URLs would drop is refused before it is sent, because it would reach another operation', async (t) => {
  const { client, seen } = await serve(t, { status: 200, headers: {}, body: '{}' });
  for (const path of ['../me', 'a/../../members', '.', 'a/.'])
    await assert.rejects(client.files.get(path), {
      name: 'ApiError',
      code: 'not_found',
      message: `No path: /api/v3/files/${path}`,
    });
  assert.deepEqual(seen, []);
  await client.files.get('a/..b/.c');
  assert.deepEqual(seen, ['GET /api/v3/files/a/..b/.c']);
});
