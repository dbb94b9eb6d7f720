// tier: whole, because it builds and installs packages
/** Notebooks get the packages that their script metadata ask for (PEP 723), from an index on loopback. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer, type TestServer } from '#test/support/server-fixture.ts';
import { type PackageIndex, startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { PYTHON } from '#test/support/stand-ins/python-databases.ts';

/** Returns the version of a package of the server's own environment. */
function installed(name: string): string {
  const program = `import importlib.metadata as m; print(m.version(${JSON.stringify(name)}))`;
  return execFileSync(PYTHON, ['-I', '-c', program], { encoding: 'utf8' }).trim();
}

/** The part of plotly that marimo asks for when it shows a figure. */
const PLOTLY = `
import sys, types
class Figure:
    layout = types.SimpleNamespace(dragmode="pan")
    def _repr_html_(self):
        return "<script>shown by itself</script>"
graph_objects = types.ModuleType("plotly.graph_objects")
graph_objects.Figure = Figure
io = types.ModuleType("plotly.io")
io.to_json = lambda figure: '{"data": []}'
class Renderers(dict):
    default = "browser"
io.renderers = Renderers()
sys.modules.update({"plotly.graph_objects": graph_objects, "plotly.io": io})
__path__ = []
`;

const index = await startPackageIndex(test, [
  { name: 'plotly', version: '1.0', code: PLOTLY },
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  { name: 'greeting', version: '2.0', code: 'import punctuation\ntext = "good day" + punctuation.mark' },
  { name: 'punctuation', version: '1.0', code: 'mark = "!"' },
  { name: 'needing', version: '1.0', code: '', requires: ['greeting>=2'] },
  { name: 'cycler', version: '99.0', code: 'where = __file__\nversion = "another"' },
  { name: 'narwhals', version: '0.1', code: '' },
  { name: 'packaging', version: '25.9', code: 'version = "25.9"' },
  { name: 'old', version: '1.0', code: '', requires: ['packaging<26'] },
  { name: 'drawing', version: '1.0', code: '', requires: [`cycler==${installed('cycler')}`] },
]);
// Libraries are loaded ahead: a package that replaces one of them must take precedence
// nevertheless.
const server = await startServer(test, {
  TROUPE_PACKAGES: 'true',
  TROUPE_PACKAGE_INDEX: index.url,
  TROUPE_PRELOAD: 'true',
});
const packages = join(server.dataDir, 'packages');

/** Imports a notebook of one cell that needs these packages, and opens it. `settings`: more lines of its script metadata. */
async function open(
  { client }: Pick<TestServer, 'client'>,
  dependencies: readonly string[],
  code: string,
  settings: readonly string[] = [],
) {
  const lines = [
    '# /// script',
    `# dependencies = ${JSON.stringify(dependencies)}`,
    ...settings.map((line) => `# ${line}`),
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

/** Opens a notebook that needs these packages and runs it. Returns its printed text. */
async function run(
  on: TestServer,
  dependencies: readonly string[],
  code: string,
  settings: readonly string[] = [],
): Promise<string> {
  const { notebook, environmentId } = await open(on, dependencies, code, settings);
  const session = await on.client.notebookSessions.waitUntilReady(notebook.id);
  const opened = new OpenNotebook(on.client, notebook, environmentId, session);
  const ran = await opened.run([]);
  await opened.close();
  const [result] = results(ran);
  assert.equal(ran.status, 'completed', JSON.stringify(result));
  return result === undefined ? '' : printed(result);
}

/** Opens a notebook that needs these packages. Returns why it cannot have a kernel. */
async function refusal(
  on: TestServer,
  dependencies: readonly string[],
  settings: readonly string[] = [],
): Promise<string> {
  const { notebook } = await open(on, dependencies, '1', settings);
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

test("objects of a notebook's packages are shown in marimo's way", async () => {
  const { notebook, environmentId } = await open(server, ['plotly'], 'import plotly\nplotly.Figure()');
  const session = await server.client.notebookSessions.waitUntilReady(notebook.id);
  const opened = new OpenNotebook(server.client, notebook, environmentId, session);
  const [result] = results(await opened.run([]));
  assert.match(String(result?.outputs[0]?.data), /^<marimo-plotly /, JSON.stringify(result));
  await opened.close();
});

test('two notebooks have different versions of a package', async () => {
  const code = 'import greeting\nprint(greeting.text)';
  assert.equal(await run(server, ['greeting==1.0'], code), 'hello\n');
  assert.equal(await run(server, ['greeting>=2', 'punctuation'], code), 'good day!\n');
});

test('requirements that differ only in order and spelling are installed once', async () => {
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

test('a notebook whose packages are already installed needs no index', async () => {
  const before = setsIn(packages).length;
  await run(server, ['marimo', 'pandas', 'numpy>=1'], 'import pandas');
  assert.equal(setsIn(packages).length, before);
});

test("a package may be another version than the server's, if marimo does not need it", async () => {
  const code = 'import cycler\nprint(cycler.version)';
  assert.equal(await run(server, ['cycler==99.0'], code), 'another\n');
  assert.match(await refusal(server, ['narwhals==0.1']), /narwhals/);
});

test('a package that marimo needs may have any version that marimo allows, and marimo still works', async () => {
  const code = [
    'import marimo as mo, old, packaging',
    'import pandas',
    'print(packaging.version, len(mo.as_html(pandas.DataFrame({"a": [1]})).text) > 0)',
  ].join('\n');
  assert.equal(await run(server, ['old'], code), '25.9 True\n');
});

test('a version that the server has installed is used, also when the index lacks it', async () => {
  assert.equal(
    await run(server, ['drawing'], 'import cycler, drawing\nprint(hasattr(cycler, "version"))'),
    'False\n',
  );
});

test('sets share the files and compiled modules of a package, and only new packages are fetched', async () => {
  const paths = 'import greeting, punctuation\nprint(greeting.__file__, greeting.__cached__, sep="\\n")';
  const files = [];
  for (const more of ['needing', 'old']) {
    const before = index.downloads.length;
    files.push((await run(server, ['greeting==2.0', 'punctuation', more], paths)).trim().split('\n'));
    if (more === 'old')
      assert.doesNotMatch(
        index.downloads.slice(before).join(),
        /greeting|punctuation/,
        'they are in the cache',
      );
  }
  const [first, second] = files.map((both) => both.map((path) => statSync(path).ino));
  assert.notDeepEqual(files[0], files[1]);
  assert.deepEqual(first, second);
});

test('a notebook does not get the packages of another one, and cannot write its own', async () => {
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

test('a text that is not a requirement, or names an address, is refused with the reason', async () => {
  assert.match(
    await refusal(server, ['greeting @ http://127.0.0.1:1/greeting-1.0-py3-none-any.whl']),
    /address/,
  );
  assert.match(await refusal(server, ['greeting ==']), /is not a requirement/);
  assert.match(await refusal(server, ['no-such-package']), /no-such-package/);
  assert.deepEqual(
    readdirSync(join(packages, '.workshop')).filter((name) => name.startsWith('.making-')),
    [],
  );
});

const SOURCE = '[tool.uv.sources]';

for (const [source, reason] of [
  ["greeting = { path = '../..' }", "greeting a source of its own (path = '../..')"],
  ["Greeting = { path = 'own', editable = true }", "Greeting a source of its own (path = 'own')"],
  [
    "greeting = { git = 'https://example.com/greeting' }",
    "greeting a source of its own (git = 'https://example.com/greeting')",
  ],
  [
    "greeting = { url = 'https://example.com/greeting-1.0.tar.gz' }",
    "greeting a source of its own (url = 'https://example.com/greeting-1.0.tar.gz')",
  ],
  ['greeting = { workspace = true }', 'greeting a source of its own (workspace = True)'],
  ["greeting = { index = 'private' }", "greeting a source of its own (index = 'private')"],
  [
    'greeting = [{ path = "a", marker = "os_name == \'nt\'" }, { path = "b", marker = "os_name == \'posix\'" }]',
    "greeting a source of its own (path = 'b')",
  ],
] as const) {
  test(`a package of another source is not taken from the index: ${source}`, async () => {
    const before = setsIn(packages).length;
    const refused = await refusal(server, ['greeting'], [SOURCE, source]);
    assert(refused.includes(`[tool.uv.sources] of the notebook gives ${reason}`), refused);
    assert.equal(setsIn(packages).length, before);
  });
}

for (const setting of [
  "extra-index-url = ['https://example.com/simple']",
  "index-url = 'https://example.com/simple'",
  "index = [{ name = 'private', url = 'https://example.com/simple' }]",
  "find-links = ['https://example.com/wheels']",
  'no-index = true',
  "no-binary-package = ['greeting']",
  "torch-backend = 'cpu'",
  "resolution = 'newest'",
  "a-later-setting = 'x'",
]) {
  const [name = ''] = setting.split(' ');
  test(`a setting of uv that cannot be obeyed is refused by name: ${name}`, async () => {
    const refused = await refusal(server, ['greeting'], ['[tool.uv]', setting]);
    assert(
      refused.includes(name === 'find-links' ? name : name.replace(/.*index-url|^index$/, 'index')),
      refused,
    );
  });
}

const GREETING = 'import greeting\nprint(greeting.text)';
for (const [what, dependencies, settings, text] of [
  ['a constraint', ['needing', 'punctuation'], ["constraint-dependencies = ['punctuation<2']"], 'good day!'],
  ['a constraint on the version', ['greeting'], ["constraint-dependencies = ['greeting<2']"], 'hello'],
  ['an override', ['needing'], ["override-dependencies = ['greeting==1.0']"], 'hello'],
  ['the lowest resolution', ['greeting>=1'], ["resolution = 'lowest'"], 'hello'],
  ['a setting without effect here', ['greeting<2'], ["link-mode = 'copy'", 'native-tls = true'], 'hello'],
  ['a source of a package that is not required', ['greeting<2'], ['sources.other = { path = "x" }'], 'hello'],
  [
    "a source that is this server's own index",
    ['greeting<2'],
    [`index = [{ name = 'own', url = '${index.url}' }]`, "sources.greeting = { index = 'own' }"],
    'hello',
  ],
  [
    'a source for another system',
    ['greeting<2'],
    ['sources.greeting = { path = "x", marker = "os_name == \'nt\'" }'],
    'hello',
  ],
] as const) {
  test(`a setting of uv in the script metadata is obeyed: ${what}`, async () => {
    assert.equal(await run(server, dependencies, GREETING, ['[tool.uv]', ...settings]), `${text}\n`);
  });
}

test('packages survive a restart, and incomplete sets do not', async (t) => {
  const own = await startPackageIndex(t, [{ name: 'kept', version: '1.0', code: 'print("kept")' }]);
  const first = await startServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: own.url });
  assert.equal(await run(first, ['kept'], 'import kept'), 'kept\n');
  const again = await first.restart();
  await own.close();
  assert.equal(await run(again, ['kept'], 'import kept'), 'kept\n');
});

test('the error for an unreachable index names the index and gives advice', async (t) => {
  const gone: PackageIndex = await startPackageIndex(t, []);
  await gone.close();
  const offline = await startServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: gone.url });
  const message = await refusal(offline, ['greeting']);
  assert.match(message, /cannot be reached/);
  assert.match(message, /TROUPE_PACKAGE_INDEX/);
  const adding = await problemOf(offline.client.packages.add(['punctuation']));
  assert.deepEqual([adding.code, adding.message], ['packages_not_installed', message]);
});

test('a run that fails because of a missing module gets advice on adding its package, or the information that the server installs none', async (t) => {
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
