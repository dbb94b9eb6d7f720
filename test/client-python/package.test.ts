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

test('the models of the Python client are those of the served document', async (t) => {
  const folder = emptyFolder(t);
  const models = join(folder, 'models.py');
  await writeModels(await readDocument(server), models, folder);
  const committed = readFileSync(join(PACKAGE, 'troupe_client/models.py'), 'utf8');
  assert.equal(committed, readFileSync(models, 'utf8'), 'run `npm run python-client`');
});

test('the synchronous client is made from the asynchronous one', async (t) => {
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
    missing: 'not_found',
    asynchronous: 'hello\n2 4',
  });
});

test('large outputs are read apart from their events, calls end at their limit or when interrupted, and sessions with their lifetime', async () => {
  const env = { ...ACCESS, PYTHONPATH: PACKAGE };
  assert.deepEqual(JSON.parse(await run(PYTHON, [join(PROGRAMS, 'limits.py')], { cwd: PACKAGE, env })), {
    large: { bytes: ['<p>'.length + 3_000_000], small: true, missing: 'not_found' },
    limits: { run: ['failed', 'timed_out'], code: [false, 'timed_out', 'begun\n'] },
    interrupts: { run: 'cancelled', code: [false, 'begun\n'] },
    lifetimes: { ttl: 86_400, idle: 3600, ended: 'session.closed', sandbox: 3600 },
  });
});

test('the package passes the strict checks of mypy', async () => {
  await run(PYTHON, ['-m', 'mypy', '--cache-dir', '/dev/null', 'troupe_client', 'scripts'], { cwd: PACKAGE });
});

test('a path with a segment that URLs drop is refused before it is sent', async (t) => {
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
