// tier: whole, because it builds and installs packages
/** Installations one after the other through the proxy, from an index without TLS whose files lie on two other servers. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import test from 'node:test';
import { startServer } from '#test/support/server-fixture.ts';
import { type PackageIndex, startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const ROUNDS = 10;

/** Starts an index of these packages, the names of which begin with `name`. */
function indexOf(name: string): Promise<PackageIndex> {
  return startPackageIndex(
    test,
    Array.from({ length: ROUNDS }, (_, i) => ({ name: `${name}${i}`, version: '1.0', code: `n = ${i}` })),
  );
}

const [even, odd] = [await indexOf('even'), await indexOf('odd')];

/** Starts an index that names the files of both. Returns its address. */
async function startFront(): Promise<string> {
  const front = createServer(async ({ url = '' }, response) => {
    const { origin } = new URL(/even/.test(url) ? even.url : odd.url);
    const page = await (await fetch(origin + url)).text();
    response.writeHead(200, { 'content-type': 'text/html' });
    response.end(page.replaceAll('href="/', `href="${origin}/`));
  }).listen(0, '127.0.0.1');
  await once(front, 'listening');
  test.after(() => {
    front.closeAllConnections();
    front.close();
  });
  return `http://127.0.0.1:${(front.address() as AddressInfo).port}/simple`;
}

for (const { name, start, expected } of [
  { name: 'one index', start: async () => even.url, expected: ['even'] },
  { name: 'an index and two servers with its files', start: startFront, expected: ['even', 'odd'] },
]) {
  test(`ten installations in a row from ${name} without TLS all succeed`, async (t) => {
    const { client } = await startServer(t, {
      TROUPE_PACKAGES: 'true',
      TROUPE_PACKAGE_INDEX: await start(),
    });
    for (let i = 0; i < ROUNDS; i++) {
      const names = expected.map((one) => `${one}${i}`);
      const added = await client.packages.add(names);
      assert.ok('installed' in added, 'it ends within the wait');
      assert.deepEqual(
        added.installed.map((one) => one.name),
        names,
      );
      for (const one of names) await client.packages.remove(one);
    }
  });
}
