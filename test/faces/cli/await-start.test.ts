import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import test from 'node:test';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import { createClient } from '#src/contract/client/client.ts';
import { awaitStart } from '#src/faces/cli/run/server-return.ts';
import { freePort } from '#test/support/stand-ins/reverse-proxies.ts';

const { signal } = new AbortController();

function clientOf(baseUrl: string) {
  return createClient({ baseUrl, accessToken: 'token', workspaceId: 'ws_1' });
}

test('a command that begins before its server waits until the server answers', async (t) => {
  const port = await freePort();
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end('{"items":[],"nextCursor":null}');
  });
  t.after(() => server.close());
  const said: string[] = [];
  const say = (text: string) => {
    if (said.push(text) === 1) server.listen(port, '127.0.0.1');
  };
  await awaitStart(clientOf(`http://127.0.0.1:${port}`), { say, signal });
  assert.deepEqual(said, ['The server does not answer; waiting up to 30 s for it.', 'The server is back.']);
});

test('a command does not wait for a server whose name has no address, or that refuses the token', async (t) => {
  const say = (text: string) => assert.fail(text);
  await assert.rejects(
    awaitStart(clientOf('http://no-such-server.invalid'), { say, signal }),
    ConnectionError,
  );
  const server = createServer((_, response) => {
    response.writeHead(401, { 'content-type': 'application/problem+json' }).end('{"code":"unauthenticated"}');
  });
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  await assert.rejects(
    awaitStart(clientOf(`http://127.0.0.1:${address.port}`), { say, signal }),
    (error) => error instanceof ApiError && error.status === 401,
  );
});

test('a command gives up a server that takes the connection and says nothing', async (t) => {
  const server = createServer(() => {}); // like a process that is stopped
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  const client = clientOf(`http://127.0.0.1:${address.port}`);
  await assert.rejects(
    awaitStart(client, { say: (text) => assert.fail(text), signal, giveUpAfterMs: 1000 }),
    ({ exitCode, message }) => exitCode === 3 && /has not answered for 1 s\. Check whether/.test(message),
  );
});
