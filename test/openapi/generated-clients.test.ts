// tier: whole, because it generates, installs and compiles clients
/**
 * Clients that the usual generators make of the OpenAPI document: they compile, and do the whole main job against a
 * real server with a real kernel. Generated code is never committed.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { readDocument } from './real-document.ts';

const GENERATORS = join(PACKAGE_ROOT, '.setup/generators');
const PROGRAMS = join(PACKAGE_ROOT, 'test/openapi/programs');
const PYTHON = join(GENERATORS, 'venv/bin/python');
/** The output of every program. */
const DONE = {
  cells: [
    ['numbers', 'success', 'total', 'success'],
    ['numbers', 'success', 'total', 'success'],
  ],
  pages: [0, 1],
  inputs: ['cells', 'all', 'Are you there?'],
  printed: '12\n',
  answer: ['I am.'],
  tested: true,
  deleted: true,
  missing: 'not_found',
  closed: ['closed', 'closed'],
};

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const document = JSON.stringify(await readDocument(server));
mkdirSync(server.filesDir, { recursive: true });
writeSqlite(join(server.filesDir, 'sales.sqlite'), 'create table sales (amount integer)');

const execute = promisify(execFile);

/** Runs a program and resolves with its standard output. Rejects with all its output when it fails. */
async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  further: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { PATH, HOME } = process.env;
  const env = {
    PATH,
    HOME,
    ...further,
    BASE_URL: server.baseUrl,
    TOKEN: OWNER.token,
    WORKSPACE: OWNER.workspaceId,
  };
  try {
    return (await execute(command, [...args], { cwd, env, maxBuffer: 64 * 1024 * 1024 })).stdout;
  } catch (error) {
    const { stdout, stderr } = Object(error) as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`);
  }
}

/** Makes a client with openapi-generator, which brings its own Java, in a folder of `folder`. */
async function generate(folder: string, generator: string, made: string, options: readonly string[] = []) {
  const places = ['--input-spec', 'openapi.json', '--output', made];
  const left = ['apiTests', 'modelTests', 'apiDocs', 'modelDocs'].map((part) => `${part}=false`).join();
  const command = ['generate', '--generator-name', generator, ...places, ...options];
  await run(
    join(GENERATORS, 'venv/bin/openapi-generator-cli'),
    [...command, '--global-property', left],
    folder,
  );
}

/** Returns a folder from which the generators' packages are found, with the document and a program in it. */
function workplace(t: TestContext, program: string): string {
  const folder = mkdtempSync(join(GENERATORS, 'made-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'openapi.json'), document);
  cpSync(join(PROGRAMS, program), join(folder, program));
  return folder;
}

/** Type-checks the program with the generated client as strictly as can be, apart from `lenient`, and runs it. */
async function checkAndRun(
  folder: string,
  program: string,
  lenient: Readonly<Record<string, boolean>> = {},
): Promise<unknown> {
  const compilerOptions = {
    target: 'es2022',
    lib: ['es2022', 'dom', 'dom.iterable'],
    module: 'esnext',
    moduleResolution: 'bundler',
    strict: true,
    noUncheckedIndexedAccess: true,
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
    typeRoots: [join(PACKAGE_ROOT, 'node_modules/@types')],
    ...lenient,
  };
  writeFileSync(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: [program, 'generated'] }),
  );
  const bin = join(PACKAGE_ROOT, 'node_modules/.bin');
  await run(join(bin, 'tsc'), ['-p', folder, '--pretty', 'false'], folder);
  const bundle = [
    '--bundle',
    '--platform=node',
    '--format=esm',
    '--outfile=program.mjs',
    '--log-level=error',
  ];
  await run(join(bin, 'esbuild'), [program, ...bundle], folder);
  model.script((exchange) => exchange.text('I am.').end());
  return JSON.parse(await run(process.execPath, ['program.mjs'], folder));
}

test('redocly finds nothing', async (t) => {
  const folder = workplace(t, 'lint.mjs');
  assert.deepEqual(JSON.parse(await run(process.execPath, ['lint.mjs'], folder)), []);
});

/** Rules of spectral that do not fit, and the reason for each. */
const UNFIT_RULES = {
  'info-contact': 'Whoever runs a server is its contact, and the server does not know them.',
  'oas3-operation-security-defined':
    'OpenAPI 3.1 allows roles for bearer tokens, which are the permissions of this API; the rule knows only scopes of OAuth.',
};

test('spectral finds no problems except those of two rules that do not apply here', async (t) => {
  const folder = workplace(t, 'spectral.mjs');
  const found = JSON.parse(await run(process.execPath, ['spectral.mjs'], folder)) as { code: string }[];
  assert.deepEqual(
    found.filter(({ code }) => !(code in UNFIT_RULES)),
    [],
  );
  assert.deepEqual(new Set(found.map(({ code }) => code)), new Set(Object.keys(UNFIT_RULES)));
});

test('openapi-typescript and openapi-fetch make a client that does the main job', async (t) => {
  const folder = workplace(t, 'openapi-fetch.ts');
  const generator = join(GENERATORS, 'node_modules/.bin/openapi-typescript');
  await run(generator, ['openapi.json', '--output', 'generated/schema.ts'], folder);
  assert.deepEqual(await checkAndRun(folder, 'openapi-fetch.ts'), DONE);
});

test('hey-api makes a client that does the main job and follows events', async (t) => {
  const folder = workplace(t, 'hey-api.ts');
  const generator = join(GENERATORS, 'node_modules/.bin/openapi-ts');
  const plugins = ['--client', '@hey-api/client-fetch', '--silent', '--no-log-file'];
  await run(generator, ['--input', 'openapi.json', '--output', 'generated', ...plugins], folder);
  const done = await checkAndRun(folder, 'hey-api.ts');
  assert.deepEqual(done, { ...DONE, firstEvent: 'session.snapshot' });
});

test('openapi-python-client makes a client of all operations and schemas, which does the main job', async (t) => {
  const folder = workplace(t, 'python_client.py');
  // The generator does not know that the media type of metrics is text. Without this setting it leaves out that operation only.
  const overrides = 'content_type_overrides:\n  application/openmetrics-text: text/plain\n';
  writeFileSync(join(folder, 'config.yml'), `post_hooks: []\n${overrides}`);
  const generate = ['-m', 'openapi_python_client', 'generate', '--path', 'openapi.json', '--meta', 'none'];
  const strictly = ['--config', 'config.yml', '--output-path', 'generated', '--fail-on-warning'];
  await run(PYTHON, [...generate, ...strictly], folder);
  await run(PYTHON, ['-m', 'mypy', '--strict', '--follow-imports=silent', 'python_client.py'], folder);
  model.script((exchange) => exchange.text('I am.').end());
  assert.deepEqual(JSON.parse(await run(PYTHON, ['python_client.py'], folder)), DONE);
});

test('openapi-generator makes a Python client that does the main job', async (t) => {
  const folder = workplace(t, 'python_generator.py');
  await generate(folder, 'python', 'made', ['--package-name', 'generated']);
  model.script((exchange) => exchange.text('I am.').end());
  const path = { PYTHONPATH: join(folder, 'made') };
  assert.deepEqual(JSON.parse(await run(PYTHON, ['python_generator.py'], folder, path)), DONE);
});

test('openapi-generator makes a client of fetch that does the main job', async (t) => {
  const folder = workplace(t, 'typescript-fetch.ts');
  await generate(folder, 'typescript-fetch', 'generated');
  // The generator's own runtime reads members of arrays without a check.
  const done = await checkAndRun(folder, 'typescript-fetch.ts', { noUncheckedIndexedAccess: false });
  assert.deepEqual(done, DONE);
});

test('orval makes a client that does the main job', async (t) => {
  const folder = workplace(t, 'orval.ts');
  const generator = join(GENERATORS, 'node_modules/.bin/orval');
  const options = ['--client', 'fetch', '--mode', 'single'];
  await run(generator, ['--input', './openapi.json', '--output', './generated/index.ts', ...options], folder);
  assert.deepEqual(await checkAndRun(folder, 'orval.ts'), DONE);
});

test('the document is valid for openapi-spec-validator', async (t) => {
  const folder = workplace(t, 'python_client.py');
  await run(PYTHON, ['-m', 'openapi_spec_validator', 'openapi.json'], folder);
});
