// tier: whole, because it measures memory
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { problemOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const LINK = '<a href="/files/endless-1.0-py3-none-any.whl">endless-1.0-py3-none-any.whl</a>\n';
const CHUNK = Buffer.from(LINK.repeat(50_000));
/**
 * More memory than an installer may use. It is bounded, so that the test ends even if nothing stops
 * the installer.
 */
const MAX_SENT_BYTES = 3 * 2 ** 30;

async function sendMuch(response: ServerResponse): Promise<void> {
  for (let sent = 0; sent < MAX_SENT_BYTES && !response.destroyed; sent += CHUNK.length) {
    if (response.write(CHUNK)) await nextTurn();
    else await Promise.race([once(response, 'drain'), once(response, 'close')]);
  }
  response.end();
}

test('an installer that an index feeds without end is stopped, and the reason names the memory', async (t) => {
  const index = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/html' });
    void sendMuch(response);
  }).listen(0, '127.0.0.1');
  await once(index, 'listening');
  t.after(() => index.closeAllConnections());
  t.after(() => void index.close());
  const { port } = index.address() as AddressInfo;
  const { client } = await startServer(t, {
    TROUPE_PACKAGES: 'true',
    TROUPE_PACKAGE_INDEX: `http://127.0.0.1:${port}/simple`,
  });
  const refused = await problemOf(client.packages.add(['endless']));
  assert.equal(refused.code, 'packages_not_installed');
  assert.match(refused.detail ?? '', /needs more memory than the installer may use/);
});
