// tier: whole, because it builds and installs packages
/**
 * The Python package: its generated files are current, its types are strict, and its wheel does the main job for people who have
 * nothing but the wheel.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { readDocument } from '#test/openapi/real-document.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { emptyFolder, PACKAGE, PROGRAMS, PYTHON, run, WHEELS, writeModels, writeSync } from './python.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
mkdirSync(server.filesDir, { recursive: true });
writeSqlite(join(server.filesDir, 'sales.sqlite'), 'create table sales (amount integer)');
const ACCESS = {
  SERVICE_BASE_URL: server.baseUrl,
  SERVICE_ACCESS_TOKEN: OWNER.token,
  SERVICE_WORKSPACE_ID: OWNER.workspaceId,
};

/** Longer than the text that an event of a conversation has in whole. */
const LONG_ANSWER_CHARS = 600_000;

/** Runs a program with the package, and resolves with the JSON that it printed. */
async function outcomeOf(program: string): Promise<unknown> {
  const env = { ...ACCESS, PYTHONPATH: PACKAGE };
  return JSON.parse(await run(PYTHON, [join(PROGRAMS, program)], { cwd: PACKAGE, env }));
}

test('the Python client has the models of the served document', async (t) => {
  const folder = emptyFolder(t);
  const models = join(folder, 'models.py');
  await writeModels(await readDocument(server), models, folder);
  const committed = readFileSync(join(PACKAGE, 'troupe_client/models.py'), 'utf8');
  assert.equal(committed, readFileSync(models, 'utf8'), 'run `npm run python-client`');
});

test('the synchronous client is made from the asynchronous client', async (t) => {
  const folder = emptyFolder(t);
  await writeSync(folder);
  const committed = join(PACKAGE, 'troupe_client/_sync');
  const files = readdirSync(folder).sort();
  assert.deepEqual(
    readdirSync(committed)
      .filter((name) => name.endsWith('.py'))
      .sort(),
    files,
  );
  for (const name of files) {
    const made = readFileSync(join(folder, name), 'utf8');
    assert.equal(readFileSync(join(committed, name), 'utf8'), made, 'run `npm run python-client`');
  }
});

test('the wheel does the main job in an empty directory and a new environment, with strict types', async (t) => {
  const folder = emptyFolder(t);
  cpSync(PACKAGE, join(folder, 'source'), { recursive: true });
  const wheel = ['-m', 'pip', 'wheel', '--quiet', '--no-deps', '--no-build-isolation', '--no-index'];
  await run(PYTHON, [...wheel, '--wheel-dir', 'built', './source'], { cwd: folder });
  await run('python3', ['-m', 'venv', 'venv'], { cwd: folder });
  const python = join(folder, 'venv/bin/python');
  const install = ['-m', 'pip', 'install', '--quiet', '--no-index', '--disable-pip-version-check'];
  const wheels = ['--find-links', WHEELS, '--find-links', 'built', 'troupe-client'];
  await run(python, [...install, ...wheels], { cwd: folder });
  const work = join(folder, 'work');
  mkdirSync(work);
  cpSync(join(PROGRAMS, 'main_job.py'), join(work, 'main_job.py'));
  await run(PYTHON, ['-m', 'mypy', '--strict', '--python-executable', python, 'main_job.py'], { cwd: work });
  model.script((exchange) => exchange.text('I am.').end());
  const done = JSON.parse(await run(python, ['main_job.py'], { cwd: work, env: ACCESS }));
  assert.deepEqual(done, {
    printed: '6\n',
    events: ['run-status', 'run-status', true],
    text: '60',
    stdout: '6\n',
    failed: ['failed', 'ZeroDivisionError'],
    summed: ['42', 'summing\n'],
    wrong: [false, 'IndexError'],
    tested: true,
    answer: 'I am.',
    notebooks: ['From Python'],
    versions: ['From Python', true, true],
    missing: 'not_found',
    asynchronous: 'hello\n2 4',
  });
});

test('large outputs are loaded separately from their events, calls end at their limit or at an interrupt, and sessions end with their lifetime', async () => {
  assert.deepEqual(await outcomeOf('limits.py'), {
    large: { bytes: ['<p>'.length + 3_000_000], small: true, missing: 'not_found' },
    limits: { run: ['failed', 'timed_out'], code: [false, 'timed_out', 'begun\n'] },
    interrupts: { run: 'cancelled', code: [false, 'begun\n'] },
    lifetimes: { ttl: 86_400, idle: 3600, ended: 'session.closed', sandbox: 3600 },
  });
});

test('a session changes the cells of its notebook, uses UI elements and completes code; the address of a session is a whole URL', async () => {
  const { urls, ...done } = (await outcomeOf('live_notebook.py')) as { readonly urls: readonly string[] };
  assert.deepEqual(done, {
    moved: ['completed', ['square'], ['gone-0']],
    found: true,
    missing: 'function_not_found',
    completions: ['value'],
    changed: [
      ['square', false],
      ['sum', false],
      ['table', true],
    ],
    cells: ['imports', 'slider', 'square', 'sum'],
    result: '512',
    refused: ['stale_update', 'stale_update'],
    inTurn: ['completed', 'completed', 'completed', 'completed'],
  });
  assert.deepEqual(urls, [urls[0], urls[0], urls[0]]);
  assert.match(urls[0]!, new RegExp(`^${server.baseUrl}/n/nb_\\w+/$`));
});

test('an answer that is longer than its event is read as a beginning with the number of characters that follow', async () => {
  model.script((exchange) => exchange.text('x'.repeat(LONG_ANSWER_CHARS)).end());
  assert.deepEqual(await outcomeOf('long_entry.py'), {
    begins: true,
    omitted: LONG_ANSWER_CHARS,
    whole: [LONG_ANSWER_CHARS, false, false],
    answer: LONG_ANSWER_CHARS,
  });
});

test('the package, and programs that use it, pass the strict checks of mypy', async () => {
  const programs = ['live_notebook.py', 'long_entry.py'].map((name) => join(PROGRAMS, name));
  const mypy = ['-m', 'mypy', '--strict', '--cache-dir', '/dev/null'];
  await run(PYTHON, [...mypy, 'troupe_client', 'scripts'], { cwd: PACKAGE });
  for (const program of programs) await run(PYTHON, [...mypy, program], { cwd: PACKAGE });
});

test('a path with a segment that URLs would drop is refused before it is sent', async (t) => {
  const program = `
from troupe_client import Troupe
with Troupe() as troupe:
    for path in ("../me", "a/../../members", "."):
        try:
            troupe.files.read(path)
        except ValueError as error:
            print(error)
`;
  const output = await run(PYTHON, ['-c', program], {
    cwd: emptyFolder(t),
    env: { ...ACCESS, PYTHONPATH: PACKAGE },
  });
  assert.equal(output, 'Not a path: ../me\nNot a path: a/../../members\nNot a path: .\n');
});
