/** The unix socket for proxies, and the addresses of this machine, which notebook code on the host's network shares. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, statSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { removeAfter } from '#test/support/remove-folder.ts';
import { OWNER } from '#test/support/server-fixture.ts';

const HEADERS = { authorization: `Bearer ${OWNER.token}`, 'service-workspace-id': OWNER.workspaceId };
const CLIENT = '203.0.113.7';
const GUESSES = 120;
/** Only root can connect in the place of the proxy's group. */
const skip = process.getuid?.() === 0 ? false : 'only root can connect';

function socketIn(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-socket-'));
  removeAfter(t, folder);
  return join(folder, 'http.sock');
}

/** Sends a request over a new connection, as a proxy does for `client`. Resolves with the status. */
async function send(socketPath: string, method: string, path: string, client: string): Promise<number> {
  const headers = { ...HEADERS, host: 'troupe', 'x-forwarded-for': client };
  const sent = request({ socketPath, method, path, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  for await (const _ of response);
  return response.statusCode!;
}

/** The addresses of the deletions in the audit. */
async function deletedBy({ client }: ChildServer): Promise<Set<string>> {
  const { items } = await client.audit();
  const deletions = items.filter(({ action }) => action === 'notebook.delete');
  return new Set(deletions.map(({ address }) => address));
}

for (const workers of [1, 3])
  test(`with ${workers} worker(s), requests at the socket for proxies have the address that the proxy names, in every worker`, {
    skip,
  }, async (t) => {
    const path = socketIn(t);
    const server = await startChildServer(t, {
      TROUPE_WORKERS: String(workers),
      TROUPE_LISTEN_SOCKET: path,
      TROUPE_LOG_LEVEL: 'debug',
    });
    assert.equal(statSync(path).mode & 0o777, 0o060, 'only the group can connect');
    const created = await Promise.all(Array.from({ length: 12 }, () => server.client.notebooks.create()));
    const statuses = await Promise.all(
      created.map(({ id }) => send(path, 'DELETE', `/api/v3/notebooks/${id}`, `6.6.6.6, ${CLIENT}`)),
    );
    assert.deepEqual(new Set(statuses), new Set([204]));
    assert.deepEqual(await deletedBy(server), new Set([CLIENT]));

    const serving = () =>
      new Set(server.log.filter(({ address }) => address === CLIENT).map(({ worker }) => worker));
    await eventually('each worker accepts connections', async () => {
      await Promise.all(Array.from({ length: 60 }, () => send(path, 'GET', '/api/v3/me', CLIENT)));
      return serving().size === workers;
    });
    assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
    assert.equal(existsSync(path), false, 'the file is gone');
  });

for (const workers of [1, 3])
  test(`a server with ${workers} worker(s) replaces the socket for proxies of a server that was killed`, {
    skip,
  }, async (t) => {
    const path = socketIn(t);
    const settings = { TROUPE_WORKERS: String(workers), TROUPE_LISTEN_SOCKET: path };
    const server = await startChildServer(t, settings);
    await server.end('SIGKILL');
    assert.ok(statSync(path).isSocket());
    await server.again();
    assert.equal(await send(path, 'GET', '/api/v3/me', CLIENT), 200);
  });

const guesses = (url: string) => `
import http.client, json, urllib.parse
place = urllib.parse.urlsplit(${JSON.stringify(url)}).netloc
statuses = []
def ask(method, path, number, token):
    connection = http.client.HTTPConnection(place)
    headers = {"Authorization": "Bearer " + token, "Service-Workspace-Id": "${OWNER.workspaceId}", "X-Forwarded-For": f"203.0.113.{number}"}
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status
for number in range(${GUESSES}):
    statuses.append(ask("GET", "/api/v3/me", number, "wrong"))
print(json.dumps([statuses.count(429) > 0, ask("DELETE", TARGET, 9, "${OWNER.token}")]))
`;

for (const workers of [1, 3])
  test(`a notebook on the network of the host cannot invent the address of its requests, with ${workers} worker(s)`, async (t) => {
    const server = await startChildServer(t, {
      TROUPE_WORKERS: String(workers),
      TROUPE_TRUSTED_PROXIES: '127.0.0.1',
    });
    const { id } = await server.client.notebooks.create();
    const notebook = await openNotebook(server, {
      guess: `TARGET = "/api/v3/notebooks/${id}"\n${guesses(server.baseUrl)}`,
    });
    const run = await notebook.run(['guess']);
    assert.deepEqual(results(run).map(printed), ['[true, 204]\n'], JSON.stringify(run.error));
    assert.deepEqual(await deletedBy(server), new Set(['127.0.0.1']));
    const warned = server.log.filter(({ distrusted }) => distrusted !== undefined);
    assert.deepEqual(
      warned.map(({ level, distrusted }) => [level, distrusted]),
      [['warn', ['127.0.0.1']]],
    );
  });
