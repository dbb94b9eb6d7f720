// tier: whole, because it builds and installs packages
/** Packages without wheels, which are built from their sources, from an index on loopback. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'node:test';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { startPackageIndex, type TestPackage } from '#test/support/stand-ins/package-index.ts';
import {
  BUILD_TOOLS,
  compiledSources,
  hostileSources,
  sourcesOf,
} from '#test/support/stand-ins/source-packages.ts';

const listener = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
test.after(() => void listener.close());
const portOf = () => Object(listener.address()).port as number;
const ordinary: readonly TestPackage[] = [
  ...BUILD_TOOLS,
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  sourcesOf('ours', '1.0', ''),
  sourcesOf('ours', '2.0', 'text = "built again"'),
  sourcesOf('needing', '1.0', 'requires = ["greeting"]'),
  { name: 'older', version: '1.0', code: '', requires: ['ours<2'] },
  { name: 'both', version: '1.0', code: 'text = "a wheel"' },
  sourcesOf('both', '2.0', ''),
  sourcesOf('nested', '1.0', '', '[build-system]\nrequires = ["making", "ours"]\nbuild-backend = "making"\n'),
  sourcesOf('plain', '1.0', '', ''),
  sourcesOf('failing', '1.0', 'print("no compiler"); raise SystemExit(3)'),
  sourcesOf('wrong', '1.0', 'name = "greeting"'),
  sourcesOf(
    'address',
    '1.0',
    '',
    '[build-system]\nrequires = ["making @ http://127.0.0.1:1/making-1.0-py3-none-any.whl"]\n',
  ),
  sourcesOf('linked', '1.0', 'import os\nos.rmdir(folder)\nos.symlink("/etc", folder)\nfolder = "."'),
  sourcesOf('endless', '1.0', 'import time\ntime.sleep(600)'),
  sourcesOf(
    'large',
    '1.0',
    'import time\nfor i in range(3): open(f"{folder}/{i}", "w").truncate(3 << 29)\ntime.sleep(600)',
  ),
  sourcesOf('greedy', '1.0', 'kept = [bytearray(b"x") * (64 << 20) for _ in range(64)]'),
];

const settings = { TROUPE_PACKAGES: 'true' };
const index = await startPackageIndex(test, ordinary);
const server = await startServer(test, { ...settings, TROUPE_PACKAGE_INDEX: index.url });

/** Adds packages, and returns the text of a module in a notebook. */
async function textOf(on: Pick<TestServer, 'client'>, requirements: readonly string[], name: string) {
  await on.client.packages.add(requirements);
  const notebook = await openNotebook(on, { a: `import ${name}\nprint(${name}.text)` });
  const [result] = results(await notebook.run([]));
  await notebook.close();
  for (const one of (await on.client.packages.list()).items) await on.client.packages.remove(one.name);
  return result === undefined ? '' : printed(result).trim();
}

async function refusalOf(on: Pick<TestServer, 'client'>, ...requirements: string[]): Promise<string> {
  const { code, detail } = await problemOf(on.client.packages.add(requirements));
  assert.equal(code, 'packages_not_installed', detail);
  return detail ?? '';
}

test('a package without a wheel is built from its sources, with the packages that its build needs', async () => {
  assert.equal(await textOf(server, ['ours'], 'ours'), 'built again');
  assert.deepEqual(
    [...new Set(index.downloads)],
    ['ours-2.0.tar.gz', 'making-1.0-py3-none-any.whl', 'punctuation-1.0-py3-none-any.whl'],
  );
});

test('a wheel that was built is used by every set that needs it', async () => {
  const before = index.downloads.length;
  await server.client.packages.add(['ours', 'greeting']);
  assert.deepEqual(
    [...new Set(index.downloads.slice(before))].filter((name) => !name.startsWith('ours')),
    ['greeting-1.0-py3-none-any.whl'],
  );
  const workshop = join(server.dataDir, 'packages', '.workshop');
  assert.deepEqual(
    readdirSync(workshop).filter((name) => name !== 'cache'),
    [],
    'nothing of a build stays',
  );
});

test('all requirements allow the version that is built', async () => {
  assert.equal(await textOf(server, ['ours==1.0'], 'ours'), 'built');
  assert.equal(await textOf(server, ['older'], 'ours'), 'built');
});

test('requirements of a built package are installed, and a build may need a package that has to be built', async () => {
  assert.equal(await textOf(server, ['needing'], 'greeting'), 'hello');
  assert.equal(await textOf(server, ['nested'], 'nested'), 'built');
});

test('a version with a wheel is preferred to newer sources', async () => {
  assert.equal(await textOf(server, ['both'], 'both'), 'a wheel');
});

test('a project without a build system is built with setuptools', async () => {
  assert.match(await refusalOf(server, 'plain'), /setuptools/);
});

const withoutCompiler =
  existsSync('/usr/bin/cc') || process.env.CI === 'true' ? false : 'there is no C compiler, /usr/bin/cc';

test('a package with an extension in C is compiled', { skip: withoutCompiler }, async () => {
  index.add(compiledSources('extended'));
  assert.equal(await textOf(server, ['extended'], '_extended'), 'compiled');
});

test('a build that fails is named with its last lines', async () => {
  assert.match(
    await refusalOf(server, 'failing'),
    /failing 1\.0 could not be built from its sources: .*no compiler/,
  );
});

test('a build that leaves the wheel of another package or a link, or asks for an address, is refused', async () => {
  assert.match(await refusalOf(server, 'wrong'), /wrong 1\.0 has not left one wheel of this version/);
  assert.match(await refusalOf(server, 'linked'), /linked has not left a wheel/);
  assert.match(await refusalOf(server, 'address'), /The build of address asks for an address/);
});

test('a build that takes too much memory or disk space is ended with the reason', async () => {
  assert.match(await refusalOf(server, 'large'), /The build of large writes more than 4 GiB/);
  assert.match(await refusalOf(server, 'greedy'), /needs more memory than a build may use/);
});

test('a build reaches nothing of the server, no network and no other build', async () => {
  const places = { index: new URL(index.url).port, other: String(portOf()), server: process.pid };
  index.add(hostileSources({ dataDir: server.dataDir, ...places }));
  const outcome = JSON.parse(await textOf(server, ['hostile'], 'hostile'));
  for (const [name, value] of Object.entries(outcome))
    assert.doesNotMatch(String(value), /^done/, `${name}: ${value}`);
  assert.equal(outcome.proxy, '[]', 'the build knows the password of the proxy');
  assert.equal(existsSync('/var/tmp/written-by-a-build'), false);
});

test('a build that takes longer than the setting allows is ended with the reason', async (t) => {
  const limits = { ...settings, TROUPE_PACKAGE_INDEX: index.url, TROUPE_PACKAGES_BUILD_TIMEOUT_S: '3' };
  const hasty = await startServer(t, limits);
  assert.match(await refusalOf(hasty, 'endless'), /took too long \(TROUPE_PACKAGES_BUILD_TIMEOUT_S\)/);
});

test('a server that builds nothing names the package and the setting', async (t) => {
  const limits = { ...settings, TROUPE_PACKAGE_INDEX: index.url, TROUPE_PACKAGES_BUILD: 'false' };
  const wheelsOnly = await startServer(t, limits);
  assert.match(
    await refusalOf(wheelsOnly, 'ours', 'greeting'),
    /^ours has no wheel for .*TROUPE_PACKAGES_BUILD/,
  );
  assert.equal(await textOf(wheelsOnly, ['both'], 'both'), 'a wheel');
});
