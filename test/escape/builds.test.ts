// tier: whole, because it attacks the confinement from many sides; as-this-user.test.ts stays in the gate
/**
 * Builds of packages in weaker set-ups of confinement: the code of a package, which a build runs, reaches as little as where all layers
 * are there, or nothing is built. `test/workspace/packages` has the builds in the best set-up of the user who runs the tests.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { BUILD_TOOLS, hostileSources } from '#test/support/stand-ins/source-packages.ts';
import { obstacle, startAttacked, type User } from './attacked-server.ts';

const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
test.after(() => void listener.close());

/** The set-ups, each with the attacks that SECURITY.md does not exclude there. */
const SET_UPS: readonly (readonly [user: User, without: string, allowed: readonly string[]])[] = [
  ['this user', 'landlock', process.getuid?.() === 0 ? ['passwords'] : []],
  ['an ordinary user', '', []],
  ['an ordinary user', 'landlock', []],
  ['an ordinary user', 'namespaces,landlock:2', ['fork']],
];

async function start(owner: Parameters<typeof startAttacked>[0], user: User, without: string) {
  const index = await startPackageIndex(owner, BUILD_TOOLS);
  const settings = { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: index.url };
  const server = await startAttacked(owner, { user, without, settings });
  const other = String(Object(listener.address()).port);
  const { dataDir, pid } = server;
  index.add(hostileSources({ dataDir, index: new URL(index.url).port, other, server: pid }));
  return { index, ...server };
}

const skipped = (user: User) => (process.env.CI === 'true' ? undefined : obstacle(user));

for (const [user, without, allowed] of SET_UPS) {
  const lacking = without === '' ? '' : `, without ${without}`;
  test(`a build as ${user}${lacking} reaches nothing of the server and no network`, {
    skip: skipped(user),
  }, async (t) => {
    const server = await start(t, user, without);
    await server.client.packages.add(['hostile']);
    const notebook = await openNotebook(server, { a: 'import hostile\nprint(hostile.text)' });
    const [result] = results(await notebook.run([]));
    assert.ok(result !== undefined);
    const outcome = JSON.parse(printed(result)) as Record<string, string>;
    assert.ok(Object.keys(outcome).length > 10);
    const done = Object.entries(outcome).filter(([, value]) => value.startsWith('done'));
    assert.deepEqual(
      done.map(([name]) => name),
      allowed,
      JSON.stringify(outcome),
    );
    assert.equal(outcome.proxy, '[]');
  });
}

test('without namespaces and Landlock, packages with wheels are installed and no package is built', {
  skip: skipped('an ordinary user'),
}, async (t) => {
  const { client, index } = await start(t, 'an ordinary user', 'namespaces,landlock');
  const { code, detail = '' } = await problemOf(client.packages.add(['hostile']));
  assert.equal(code, 'packages_not_installed');
  assert.match(detail, /^hostile has no wheel .* builds cannot be confined on this machine/);
  assert.ok(!index.downloads.some((file) => file.startsWith('hostile')));
  await client.packages.add(['punctuation']);
});
