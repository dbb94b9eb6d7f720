/** Notebooks get the packages that their script metadata ask for (PEP 723), from an index on loopback. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { type PackageIndex, startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const index = await startPackageIndex(test, [
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  { name: 'greeting', version: '2.0', code: 'import punctuation\ntext = "good day" + punctuation.mark' },
  { name: 'punctuation', version: '1.0', code: 'mark = "!"' },
  { name: 'needing', version: '1.0', code: '', requires: ['greeting>=2'] },
  { name: 'sources', version: '1.0', code: '', isSource: true },
  { name: 'cycler', version: '99.0', code: 'where = __file__\nversion = "another"' },
  { name: 'narwhals', version: '0.1', code: '' },
]);
// With libraries loaded ahead: a package that replaces one of them must win all the same.
const server = await startServer(test, {
  TROUPE_PACKAGES: 'true',
  TROUPE_PACKAGE_INDEX: index.url,
  TROUPE_PRELOAD: 'true',
});
const packages = join(server.dataDir, 'packages');

/** Imports a notebook of one cell that needs these packages, and opens it. */
async function open({ client }: Pick<TestServer, 'client'>, dependencies: readonly string[], code: string) {
  const lines = [
    '# /// script',
    `# dependencies = ${JSON.stringify(dependencies)}`,
    '# ///',
    'import marimo',
    '',
  ];
  const body = [
    'app = marimo.App()',
    '',
    '@app.cell',
    'def _():',
    ...code.split('\n').map((line) => `    ${line}`),
  ];
  const content = [...lines, ...body, '    return', ''].join('\n');
  const notebook = await client.notebooks.import({ format: 'py', content });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
  return { notebook, environmentId };
}

/** Opens such a notebook and runs it. Returns its printed text. */
async function run(on: TestServer, dependencies: readonly string[], code: string): Promise<string> {
  const { notebook, environmentId } = await open(on, dependencies, code);
  const session = await on.client.notebookSessions.waitUntilReady(notebook.id);
  const opened = new OpenNotebook(on.client, notebook, environmentId, session);
  const ran = await opened.run([]);
  await opened.close();
  const [result] = results(ran);
  assert.equal(ran.status, 'completed', JSON.stringify(result));
  return result === undefined ? '' : printed(result);
}

/** Opens such a notebook. Returns why it cannot have a kernel. */
async function refusal(on: TestServer, dependencies: readonly string[]): Promise<string> {
  const { notebook } = await open(on, dependencies, '1');
  const session = await on.client.notebookSessions.waitUntilReady(notebook.id);
  assert.equal(session.status, 'failed');
  await on.client.notebookSessions.close(notebook.id);
  return session.error?.message ?? '';
}

const setsIn = (folder: string) => readdirSync(folder).filter((name) => !name.startsWith('.'));

test('a notebook and the programs that it starts can import its packages and their dependencies', async () => {
  const code = [
    'import subprocess, sys, greeting',
    'print(greeting.text)',
    'print(subprocess.check_output([sys.executable, "-c", "import greeting; print(greeting.text)"], text=True))',
  ].join('\n');
  assert.equal(await run(server, ['marimo', 'needing', 'punctuation'], code), 'good day!\ngood day!\n\n');
  assert.equal(setsIn(packages).length, 1);
});

test('two notebooks have different versions of a package', async () => {
  const code = 'import greeting\nprint(greeting.text)';
  assert.equal(await run(server, ['greeting==1.0'], code), 'hello\n');
  assert.equal(await run(server, ['greeting>=2', 'punctuation'], code), 'good day!\n');
});

test('the same requirements in another order and spelling are installed once', async () => {
  const before = index.downloads.length;
  await run(server, ['Punctuation', 'NEEDING', 'marimo'], 'import needing');
  assert.equal(index.downloads.length, before);
});

test('sessions that ask for the same packages at the same time wait for one installation', async () => {
  const before = setsIn(packages).length;
  const release = index.hold();
  const opening = Array.from({ length: 8 }, () =>
    run(server, ['greeting==1.0', 'punctuation'], 'import greeting'),
  );
  release();
  await Promise.all(opening);
  assert.equal(setsIn(packages).length, before + 1);
});

test('invalid script metadata are refused with the reason', async () => {
  const opened = async (metadata: string) => {
    const content = `# /// script\n# ${metadata}\n# ///\nimport marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    1\n    return\n`;
    const { id } = await server.client.notebooks.import({ format: 'py', content });
    const { environmentId } = await server.client.executionEnvironments.create();
    await server.client.notebookSessions.open({ notebookId: id, environmentId });
    const { error } = await server.client.notebookSessions.waitUntilReady(id);
    await server.client.notebookSessions.close(id);
    return error?.message ?? '';
  };
  assert.match(
    await opened('requires-python = [">=3.11"]'),
    /requires-python of the notebook must be a text/,
  );
  assert.match(await opened(`a = ${'['.repeat(20_000)}`), /nested too deeply/);
});

test('a notebook whose packages are installed already needs no index', async () => {
  const before = setsIn(packages).length;
  await run(server, ['marimo', 'pandas', 'numpy>=1'], 'import pandas');
  assert.equal(setsIn(packages).length, before);
});

test("a package may be another version than the server's, if marimo does not need it", async () => {
  const code = 'import cycler\nprint(cycler.version)';
  assert.equal(await run(server, ['cycler==99.0'], code), 'another\n');
  assert.match(await refusal(server, ['narwhals==0.1']), /narwhals/);
});

test('the packages of one notebook are not those of another, and cannot be written', async () => {
  const code = [
    'import importlib.util, os, punctuation',
    'site = os.path.dirname(punctuation.__file__)',
    'print(importlib.util.find_spec("greeting"), os.access(site, os.W_OK))',
    'print(os.listdir(os.path.dirname(os.path.dirname(site))))',
  ].join('\n');
  const [first, others] = (await run(server, ['punctuation'], code)).split('\n');
  assert.equal(first, 'None False');
  assert.equal(others?.split(',').length, 1, 'the folders of other notebooks can be seen');
});

test('archives of sources are not built', async () => {
  assert.match(await refusal(server, ['sources']), /sources.* no wheels|wheel/i);
});

test('a text that is not a requirement, or names an address, is refused with the reason', async () => {
  assert.match(
    await refusal(server, ['greeting @ http://127.0.0.1:1/greeting-1.0-py3-none-any.whl']),
    /address/,
  );
  assert.match(await refusal(server, ['greeting ==']), /is not a requirement/);
  assert.match(await refusal(server, ['no-such-package']), /no-such-package/);
  assert.deepEqual(
    readdirSync(packages).filter((name) => name.startsWith('.')),
    [],
  );
});

test('packages survive a restart, and half-made sets do not', async (t) => {
  const own = await startPackageIndex(t, [{ name: 'kept', version: '1.0', code: 'print("kept")' }]);
  const first = await startServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: own.url });
  assert.equal(await run(first, ['kept'], 'import kept'), 'kept\n');
  const again = await first.restart();
  await own.close();
  assert.equal(await run(again, ['kept'], 'import kept'), 'kept\n');
});

test('the failure to reach an index names it, with advice', async (t) => {
  const gone: PackageIndex = await startPackageIndex(t, []);
  await gone.close();
  const offline = await startServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: gone.url });
  const message = await refusal(offline, ['greeting']);
  assert.match(message, /cannot be reached/);
  assert.match(message, /TROUPE_PACKAGE_INDEX/);
  const adding = await problemOf(offline.client.packages.add(['punctuation']));
  assert.deepEqual([adding.code, adding.message], ['packages_not_installed', message]);
});

test('a run that fails for a missing module gets advice for adding its package, or learns that the server installs none', async (t) => {
  const closed = await startServer(t);
  const advice = async (on: TestServer) => {
    const notebook = await openNotebook(on, { a: 'import no_such_module' });
    const { error } = await notebook.run([]);
    await notebook.close();
    return error?.message ?? '';
  };
  assert.match(await advice(server), /no_such_module.*dependencies.*PEP 723/);
  assert.match(await advice(closed), /no_such_module.*TROUPE_PACKAGES/);
});

test('packages that no session uses are removed when all together are too large', async (t) => {
  const big = ['a', 'b', 'c'].map((letter) => ({
    name: `big${letter}`,
    version: '1.0',
    code: `data = "${letter.repeat(700_000)}"`,
  }));
  const own = await startPackageIndex(t, big);
  const small = await startServer(t, {
    TROUPE_PACKAGES: 'true',
    TROUPE_PACKAGE_INDEX: own.url,
    TROUPE_PACKAGES_MAX_MB: '3',
  });
  for (const { name } of big) await run(small, [name], `import ${name}`);
  assert.ok(setsIn(join(small.dataDir, 'packages')).length < big.length);
});
