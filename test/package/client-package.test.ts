// tier: whole, because it packs, installs and starts packages
/** The package `troupe-client`, used from an empty folder: strict compilation, the main job of its README, and lost connections. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type * as Package from '#src/contract/client/index.ts';
import { SNIPPETS } from '#src/faces/cli/snippets.ts';
import { openBrowser, withoutBrowser } from '#test/support/browser.ts';
import { openNotebook, writing } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startCuttingProxy } from '#test/support/stand-ins/cutting-proxy.ts';

const execute = promisify(execFile);
const MAX_GZIPPED_BYTES = 8.5 * 1024;
const CUT_EVERY_MS = 200;
const RUNS = 50;
/** How long the stand-in and the page may take on a busy machine. */
const PATIENCE_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'troupe-client-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const setUp = (await import(pathToFileURL(join(PACKAGE_ROOT, 'src/setup/client-package.mjs')).href)) as {
  makeClientPackage(): Promise<string>;
};
const { stdout: packed } = await execute('npm', ['pack', await setUp.makeClientPackage()], { cwd: folder });
mkdirSync(join(folder, 'node_modules/troupe-client'), { recursive: true });
await execute('tar', ['xzf', packed.trim(), '--strip-components=1', '-C', 'node_modules/troupe-client'], {
  cwd: folder,
});
const installed = join(folder, 'node_modules/troupe-client');
const read = (name: string) => readFileSync(join(installed, name), 'utf8');
const client = (await import(pathToFileURL(join(installed, 'index.js')).href)) as typeof Package;
const pageOrigin = await servePage();
const server = await startServer(test, {
  TROUPE_CORS_ORIGINS: pageOrigin,
  TROUPE_OPENAI_COMPATIBLE_URL: await startModelStandIn(),
  TROUPE_DEFAULT_MODEL: 'openai-compatible/stand-in',
});
const access = { accessToken: OWNER.token, workspaceId: OWNER.workspaceId };
const [firstProgram = '', agentProgram = '', datasourceProgram = '', ...untested] = [
  ...read('README.md').matchAll(/^```ts\n(.*?)^```$/gms),
].map(([, program]) => program!);

test('the package has no dependencies, uses no module of Node.js, and is small', () => {
  const { dependencies, peerDependencies, sideEffects } = JSON.parse(read('package.json')) as Record<
    string,
    unknown
  >;
  assert.deepEqual([dependencies, peerDependencies, sideEffects], [undefined, undefined, false]);
  const code = read('index.js');
  for (const loading of [/["']node:/, /\brequire\(/, /\bimport\(["'`]/, /^import\b/m, /;import\b/])
    assert.ok(!loading.test(code), `${loading} is in the module`);
  assert.ok(gzipSync(code, { level: 9 }).length <= MAX_GZIPPED_BYTES);
});

test('the program of its README compiles strictly without the types of Node.js, and does the main job', async () => {
  assert.deepEqual(untested, []);
  assert.match(await compileAndRun(firstProgram), /^completed 60$/m);
  const { items } = await server.client.notebookSessions.list({ status: 'open' });
  assert.deepEqual(items, [], 'the session is closed at the end of its block');
});

test('the program of its README about agents compiles strictly, and the stand-in for a model adds a cell', async () => {
  const stdout = await compileAndRun(agentProgram);
  assert.match(stdout, /^completed\nuser: Add the sum .*\nassistant: .*\nassistant calls run_python\n/);
  assert.match(stdout, /\*\*55\*\*/);
  const { items } = await server.client.notebooks.list({ title: 'Squares' });
  const { serialization } = await server.client.notebooks.get(items[0]?.id ?? '');
  assert.deepEqual(
    serialization.cells.map(({ code }) => code),
    ['squares = [n * n for n in range(1, 6)]\nsum(squares)'],
  );
});

test('the program of its README about datasources compiles strictly, and prints the total', async () => {
  const stdout = await compileAndRun(datasourceProgram);
  assert.match(stdout, /^true .*\n\[ \[ .*42 \] \]\n$/);
});

test('a bundled page of another origin does the main job', { skip: withoutBrowser }, async (t) => {
  const { context } = await openBrowser(t);
  const view = await context.newPage();
  const printed: string[] = [];
  view.on('console', (message) => {
    if (message.type() === 'log') printed.push(message.text());
  });
  view.on('pageerror', (error) => printed.push(`error: ${error.message}`));
  await view.goto(pageOrigin);
  const isDone = () => printed.some((line) => line === 'done' || line.startsWith('error:'));
  await eventually('the end of the program', isDone, PATIENCE_MS);
  assert.deepEqual(
    printed.slice(0, 2).map((text) => text.trim()),
    ['6', 'completed 60'],
  );
  assert.equal(printed.at(-1), 'done');
  const { items } = await server.client.notebookSessions.list({ status: 'open' });
  assert.deepEqual(items, [], 'the session is closed at the end of its block');
});

test('the program that `troupe init typescript` prints compiles strictly, and runs', async () => {
  const { text } = SNIPPETS.typescript({ baseUrl: server.baseUrl, workspaceId: OWNER.workspaceId });
  assert.equal(await compileAndRun(text), '6\n\n60\n');
});

test('over connections that break every 200 ms, each of 50 runs is done once, and no event arrives twice', async (t) => {
  const notebook = await openNotebook(server, { count: 'print("counted")' });
  const proxy = await startCuttingProxy(t, server.baseUrl);
  const cutting = setInterval(() => proxy.cut(), CUT_EVERY_MS);
  t.after(() => clearInterval(cutting));
  const troupe = new client.Troupe({ ...access, baseUrl: proxy.baseUrl });
  const session = await troupe.open(notebook.id);
  const seen: string[] = [];
  const runs = Array.from({ length: RUNS }, () => session.run('count'));
  const ends = await Promise.all(
    runs.map(async (run) => {
      for await (const { id } of run) seen.push(id);
      return run.result();
    }),
  );
  assert.deepEqual(new Set(ends.map(({ status }) => status)), new Set(['completed']));
  assert.equal(new Set(ends.map(({ id }) => id)).size, RUNS);
  assert.deepEqual(new Set(ends.map(({ cells }) => cells.count?.stdout)), new Set(['counted\n']));
  assert.equal(new Set(seen).size, seen.length, 'no event comes twice');
  const stored = [];
  for await (const { id } of server.client.executions.each(notebook.id)) stored.push(id);
  assert.deepEqual(stored.toSorted(), ends.map(({ id }) => id).toSorted());
});

test('a code call whose connection breaks rejects with CodeInterrupted and is not repeated', async (t) => {
  const notebook = await openNotebook(server, { one: '1' });
  const proxy = await startCuttingProxy(t, server.baseUrl);
  const session = await new client.Troupe({ ...access, baseUrl: proxy.baseUrl }).open(notebook.id);
  const printed: string[] = [];
  const code = `import time\n${writing('begun')}\ntime.sleep(60)`;
  const call = session.code(code, {
    onStdout: (text) => {
      printed.push(text);
      proxy.cut();
    },
  });
  await assert.rejects(call, client.CodeInterrupted);
  assert.deepEqual(printed, ['begun\n']);
});

test('a session changes cells, sets UI elements, calls their functions and completes code, one at a time where they use the kernel', async () => {
  const cells = {
    slider: 'import marimo as mo\nn = mo.ui.slider(1, 50)\nn',
    table: 'rows = mo.ui.table([{"city": "Oslo"}, {"city": "Bergen"}])',
    square: 'n.value ** 2',
  };
  const notebook = await openNotebook(server, cells);
  const session = await new client.Troupe({ ...access, baseUrl: server.baseUrl }).open(notebook.id);
  assert.equal(session.opened.url, `/n/${notebook.id}/`);
  await session.run().result();
  const { stdout } = await session.code('print(n._id, rows._id)');
  const [slider = '', table = ''] = stdout.trim().split(' ');
  const search = { namespace: table, functionName: 'search' };
  const [moved, found, missing, square] = await Promise.all([
    session.setUiValues({ values: { [slider]: 8, 'gone-0': 1 }, timeoutS: 60 }),
    session.callFunction({ ...search, args: { query: 'oslo', page_size: 10, page_number: 0 } }),
    session.callFunction({ namespace: table, functionName: 'nothing', args: {} }),
    session.run('square').result(),
  ]);
  assert.deepEqual([moved.status, moved.unknown], ['completed', ['gone-0']]);
  assert.ok(found.success && /Oslo/.test(JSON.stringify(found.value)));
  assert.equal(missing.error?.type, 'function_not_found');
  assert.equal(square.text, '64');
  const { options } = await session.complete({ code: 'n.val', cellId: 'square' });
  assert.deepEqual(
    options.map(({ name }) => name),
    ['value'],
  );
  const versionOf = async () =>
    (await notebook.record()).cells.find(({ cellId }) => cellId === 'square')?.version ?? 0;
  const change = (code: string, version: number) =>
    session.change({ changes: [{ type: 'set-code', cellId: 'square', code, version }] });
  const version = await versionOf();
  const changed = await change('n.value ** 3', version);
  assert.deepEqual(changed.cells, [{ cellId: 'square', version: await versionOf() }]);
  await assert.rejects(change('0', version), { code: 'stale_update' });
  const { updatedAt } = await server.client.notebooks.get(notebook.id);
  await session.change({ changes: [{ type: 'delete-cell', cellId: 'table' }], expectedUpdatedAt: updatedAt });
  await assert.rejects(
    session.change({ changes: [{ type: 'delete-cell', cellId: 'slider' }], expectedUpdatedAt: updatedAt }),
    { code: 'stale_update' },
  );
  assert.equal((await session.run('square').result()).text, '512');
});

test('a function whose connection breaks rejects with CodeInterrupted and is not called again', async (t) => {
  const cells = {
    slow: [
      'import dataclasses, time',
      'import marimo as mo',
      'from marimo._runtime.context import get_context',
      'from marimo._runtime.functions import Function',
      'element = mo.ui.text()',
      '@dataclasses.dataclass',
      'class Args: n: int = 0',
      'def slow(args):',
      '    with open("calls", "a") as calls: calls.write("called\\n")',
      '    time.sleep(60)',
      'get_context().function_registry.register(element._id, Function("slow", Args, slow))',
      'element',
    ].join('\n'),
  };
  const notebook = await openNotebook(server, cells);
  const proxy = await startCuttingProxy(t, server.baseUrl);
  const session = await new client.Troupe({ ...access, baseUrl: proxy.baseUrl }).open(notebook.id);
  await session.run().result();
  const namespace = (await session.code('print(element._id)')).stdout.trim();
  const called = () => readFileSync(join(server.filesDir, 'calls'), { encoding: 'utf8', flag: 'a+' });
  const call = session.callFunction({ namespace, functionName: 'slow', args: {} });
  call.catch(() => {});
  await eventually('the function runs', () => called() !== '', PATIENCE_MS);
  proxy.cut();
  await assert.rejects(call, client.CodeInterrupted);
  const isFree = async () => (await notebook.record()).status === 'ready';
  await eventually('the function is interrupted', isFree, PATIENCE_MS);
  assert.equal(called(), 'called\n');
});

test('a large output of an event is read by its assetId, and code ends at its time limit', async () => {
  const notebook = await openNotebook(server, { large: 'import marimo as mo\nmo.Html("x" * 2_000_000)' });
  const session = await new client.Troupe({ ...access, baseUrl: server.baseUrl }).open(notebook.id);
  const assetIds: string[] = [];
  for await (const event of session.run('large')) {
    assert.ok(JSON.stringify(event).length < 2 ** 20);
    if (event.type === 'cell-op' && event.data.output?.assetId) assetIds.push(event.data.output.assetId);
  }
  const values = await Promise.all(assetIds.map((assetId) => session.asset(assetId)));
  assert.deepEqual(
    values.map(({ bytes }) => Buffer.from(bytes).toString()),
    ['x'.repeat(2_000_000)],
  );
  await assert.rejects(session.asset('asset_none'), { code: 'not_found' });
  const late = await session.code('print("begun", flush=True)\nwhile True: pass', { timeoutS: 1 });
  assert.deepEqual(
    [late.success, late.errors.map(({ type }) => type), late.stdout],
    [false, ['interruption', 'timed_out'], 'begun\n'],
  );
});

test('results have text, tables and pictures as bytes, and printed text is reported while the code runs', async () => {
  const notebook = await openNotebook(server, { one: '1' });
  const troupe = new client.Troupe({ ...access, baseUrl: server.baseUrl });
  const session = await troupe.open(notebook.id);
  const printed: string[] = [];
  // Calls of one session wait for each other.
  const [table, figure, failure] = await Promise.all([
    session.code('import pandas as pd\npd.DataFrame({"a": [1, 2]})', { keep: true }),
    session.code('import matplotlib.pyplot as plt\nprint("drawn")\nplt.plot([1, 2])\nplt.show()', {
      onStdout: (text) => printed.push(text),
    }),
    session.code('1 / 0'),
  ]);
  assert.deepEqual(
    table.table?.rows.map((row) => row.at(-1)),
    [1, 2],
  );
  assert.equal(Buffer.from(figure.images[0]?.bytes ?? []).toString('latin1', 1, 4), 'PNG');
  assert.equal(printed.join(''), 'drawn\n');
  assert.deepEqual([failure.success, failure.errors[0]?.type], [false, 'ZeroDivisionError']);
  assert.equal((await session.run('one').result()).text, '1');
});

/** Compiles a program strictly and without the types of Node.js, and returns its output. */
async function compileAndRun(program: string): Promise<string> {
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'main.ts'), program);
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'nodenext',
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    types: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['main.ts'] }));
  await execute(join(PACKAGE_ROOT, 'node_modules/.bin/tsc'), ['-p', folder, '--pretty', 'false']);
  const env = {
    PATH: process.env.PATH,
    SERVICE_BASE_URL: server.baseUrl,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
  };
  return (await execute(process.execPath, ['main.js'], { cwd: folder, env })).stdout;
}

/** Serves a page with the first program of the README, bundled, and returns its origin. */
async function servePage(): Promise<string> {
  const host = createServer(async (request, response) => {
    if (request.url !== '/main.js') {
      response.setHeader('content-type', 'text/html');
      response.end(
        '<!doctype html><link rel="icon" href="data:,"><script type="module" src="main.js"></script>',
      );
      return;
    }
    response.setHeader('content-type', 'text/javascript');
    response.end(await bundled());
  });
  await new Promise<void>((listening) => host.listen(0, '127.0.0.1', listening));
  test.after(() => {
    host.closeAllConnections();
    host.close();
  });
  return `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
}

/** Returns the first program of the README as a bundle for a page, which reports its end. */
async function bundled(): Promise<string> {
  const options = JSON.stringify({ ...access, baseUrl: server.baseUrl });
  const contents = `${firstProgram.replace('new Troupe()', `new Troupe(${options})`)}\nconsole.log('done');`;
  const { outputFiles } = await build({
    stdin: { contents, loader: 'ts', resolveDir: folder },
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
  });
  return outputFiles[0]!.text;
}

/** Starts the stand-in for a model, and returns its address. */
async function startModelStandIn(): Promise<string> {
  const standIn = spawn(process.execPath, [join(PACKAGE_ROOT, 'src/setup/model-stand-in.mjs'), '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  test.after(() => standIn.kill('SIGKILL'));
  let said = '';
  for (const stream of [standIn.stdout, standIn.stderr])
    stream.on('data', (text: Buffer) => {
      said += text.toString();
    });
  const address = () => /OPENAI_COMPATIBLE_URL=(\S+)/.exec(said)?.[1];
  await eventually('the stand-in listens', () => address() !== undefined, PATIENCE_MS);
  return address() ?? '';
}
