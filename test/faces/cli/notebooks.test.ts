import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Actor } from '#src/contract/wire/actor.ts';
import type { Notebook, NotebookSummary } from '#src/contract/wire/notebook.ts';
import type { Environment, NotebookSession } from '#src/contract/wire/session.ts';
import { cellsOf, writing } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const { troupe, json, text } = shell;

test('a notebook is created, shown, listed and deleted', async () => {
  const fields = {
    serialization: { cells: [{ cell_id: 'a', code: 'x = 1\nx', options: { name: 'first' } }] },
    variables: { SECRET: 'hidden-value' },
  };
  const id = await text(['notebooks', 'create', '-'], { input: JSON.stringify(fields) });
  const shown = await text(['notebooks', 'show', id]);
  assert.match(
    shown,
    new RegExp(
      `^notebook   ${id}\ncreated    \\S+\nupdated    \\S+ by owner\ncells      1\nvariables  SECRET\n`,
    ),
  );
  assert.ok(shown.endsWith('\n\na  first\nx = 1\nx'), shown);
  assert.doesNotMatch(shown, /hidden-value/);
  assert.deepEqual(await json(['notebooks', 'show', id]), await client.notebooks.get(id));
  const listed = await json<NotebookSummary[]>(['notebooks', 'list']);
  assert.ok(listed.some((notebook) => notebook.id === id));
  assert.match(
    await text(['notebooks', 'list']),
    new RegExp(`^ID +TITLE +CELLS +UPDATED\n(.*\n)*${id} +- +1 `),
  );
  assert.equal(await text(['notebooks', 'delete', id]), `${id} is deleted.`);
  const { exitCode, err } = await troupe(['notebooks', 'show', id]);
  assert.equal(exitCode, 1);
  assert.match(
    err,
    new RegExp(`^troupe: .*\n {2}\\(not_found at /api/v3/notebooks/${id}, request \\S+\\)\n$`),
  );
});

test('an empty notebook needs no input, and input that is not JSON is a usage error', async () => {
  const empty = await json<Notebook>(['notebooks', 'create']);
  assert.deepEqual(empty.serialization.cells, []);
  const { exitCode, out, err } = await troupe(['notebooks', 'create', '-'], { input: '{' });
  assert.deepEqual([exitCode, out], [2, '']);
  assert.match(err, /^troupe: Standard input is not valid JSON/);
});

test('a marimo file can be imported and exported again', async () => {
  writeFileSync(join(shell.cwd, 'plain.py'), marimoFile({ load: 'x = 41', _: 'x + 1' }));
  const id = await text(['notebooks', 'import', 'plain.py']);
  const { serialization } = await client.notebooks.get(id);
  assert.deepEqual(
    serialization.cells.map(({ code, options }) => [code, options.name]),
    [
      ['x = 41', 'load'],
      ['x + 1', undefined],
    ],
  );
  const exported = await text(['notebooks', 'export', id]);
  assert.match(exported, /def load\(\):\n {4}x = 41/);
  const again = await json<Notebook[]>(['notebooks', 'import', '--format', 'py', '-'], { input: exported });
  assert.deepEqual(
    again.map((notebook) => notebook.serialization.cells.map(({ code }) => code)),
    [['x = 41', 'x + 1']],
  );
  const { exitCode, out } = await troupe(['notebooks', 'export', id, '-o', 'copy.ipynb']);
  assert.deepEqual([exitCode, out], [0, '']);
  assert.equal(JSON.parse(readFileSync(join(shell.cwd, 'copy.ipynb'), 'utf8')).nbformat, 4);
});

test('a file that is not a notebook is refused with the reason', async () => {
  writeFileSync(join(shell.cwd, 'broken.ipynb'), 'not a notebook');
  const unknown = await troupe(['notebooks', 'import', 'table.xlsx']);
  assert.deepEqual([unknown.exitCode, unknown.out], [2, '']);
  assert.match(unknown.err, /the name must end in \.py, \.ipynb or \.md/);
  const missing = await troupe(['notebooks', 'import', 'missing.py']);
  assert.deepEqual(missing, { exitCode: 2, out: '', err: 'troupe: There is no file missing.py.\n' });
  const broken = await troupe(['notebooks', 'import', 'broken.ipynb']);
  assert.equal(broken.exitCode, 1);
  assert.match(broken.err, /unreadable_notebook/);
});

test('a session is opened in a new environment, shown, and closed together with it', async () => {
  const { id } = await client.notebooks.create({ serialization: { cells: cellsOf({ a: 'x = 1' }) } });
  const opened = await troupe(['sessions', 'open', id]);
  assert.deepEqual([opened.exitCode, opened.out], [0, `${id}\n`]);
  assert.match(opened.err, /^ready in .*, in env_\w+\n$/);
  const session = await json<NotebookSession>(['sessions', 'show', id]);
  assert.deepEqual([session.status, session.mode], ['ready', 'edit']);
  const env = { SERVICE_SESSION_ID: id };
  const shown = await text(['sessions', 'show'], { env });
  assert.match(shown, /\nstatus +ready\n/);
  assert.match(shown, /\nCELL +NAME +STATUS +STALE\na +- +stale +yes$/);
  const { environmentId = '' } = { environmentId: session.environmentId ?? '' };
  assert.match(await text(['environments', 'show', environmentId]), new RegExp(`notebook session  ${id}`));
  assert.equal(await text(['sessions', 'close', '--with-environment'], { env }), `${id} is closed.`);
  assert.equal((await json<Environment>(['environments', 'show', environmentId])).status, 'closed');
});

test('an environment in use is not closed', async () => {
  const environmentId = await text(['environments', 'create']);
  const { id } = await client.notebooks.create({});
  const opened = await json<NotebookSession>([
    'sessions',
    'open',
    id,
    '--environment',
    environmentId,
    '--mode',
    'run',
  ]);
  assert.deepEqual([opened.status, opened.mode], ['ready', 'run']);
  const { exitCode, err } = await troupe(['environments', 'close', environmentId, '--json']);
  assert.deepEqual([exitCode, JSON.parse(err).error.code], [1, 'environment_in_use']);
  await text(['sessions', 'close', id]);
  assert.equal(await text(['environments', 'close', environmentId]), `${environmentId} is closed.`);
});

test('with --json a refusal names the mistake and its place in the request', async () => {
  const refused = await troupe(['notebooks', 'create', '-', '--json'], { input: '{"title": 5}' });
  assert.equal(refused.exitCode, 1);
  const { error } = JSON.parse(refused.err);
  assert.deepEqual(
    [error.code, error.status, error.errors],
    ['invalid_request', 400, [{ path: '/title', message: 'must be string or must be null' }]],
  );
});

test('when opening a session fails, the environment that was created for the session is closed', async () => {
  const { exitCode, out, err } = await troupe(['sessions', 'open', 'nb_unknown']);
  assert.deepEqual([exitCode, out], [1, '']);
  assert.match(err, /not_found/);
  const actors = await json<Actor[]>(['actors']);
  const open = actors.filter(({ kind, state }) => kind === 'environment' && state !== 'closed');
  assert.deepEqual(open, []);
});

test('the events of a session are printed as one JSON document per line until it closes', async () => {
  const { id } = await client.notebooks.create({ serialization: { cells: cellsOf({ a: writing('42') }) } });
  await text(['sessions', 'open', id]);
  const [lines, people] = [
    shell.start(['sessions', 'events', id, '--json']),
    shell.start(['sessions', 'events', id]),
  ];
  await Promise.all([lines.until('session.replayed'), people.until('session.replayed')]);
  const { runId } = await client.executions.submit(id, { type: 'all' });
  await client.waitForRun(runId);
  await text(['sessions', 'close', id, '--with-environment']);
  const { exitCode, out } = await lines.ended;
  const events = out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual([exitCode, events[0].type, events.at(-1).type], [0, 'session.snapshot', 'session.closed']);
  const printed = events.find(({ type }) => type === 'console-output');
  assert.deepEqual([printed.runId, printed.data.text], [runId, '42\n']);
  assert.match((await people.ended).out, /\nconsole-output {2}a stdout "42\\n"\n/);
});

test('the actors of the workspace are printed as a table or as JSON', async () => {
  const environmentId = await text(['environments', 'create']);
  const items = await json<Actor[]>(['actors']);
  assert.ok(items.some(({ kind, id }) => kind === 'environment' && id === environmentId));
  assert.match(
    await text(['actors']),
    new RegExp(`^KIND +ID +STATE .*\n(.*\n)*environment +${environmentId} +open\\.vacant `),
  );
  await text(['environments', 'close', environmentId]);
});

test('shell completion offers the ids of objects on the server', async () => {
  const { id } = await client.notebooks.create({});
  assert.ok((await text(['complete-ids', 'notebook'])).split('\n').includes(id));
  const { items: runs } = await client.runs.list({ order: 'desc' });
  assert.deepEqual(
    (await text(['complete-ids', 'run'])).split('\n').filter(Boolean),
    runs.map((run) => run.id),
  );
});

test('no command prints the token or accepts a token as an argument', async () => {
  const child = shell.start(['notebooks', 'list']);
  const { out, err } = await child.ended;
  const { out: help } = await troupe(['notebooks', 'list', '--help']);
  for (const shown of [child.commandLine, out, err, help]) assert.ok(!shown.includes(server.owner.token));
  const refused = await troupe(['notebooks', 'list'], { env: { SERVICE_ACCESS_TOKEN: 'not-the-right-one' } });
  assert.equal(refused.exitCode, 1);
  assert.match(refused.err, /unauthenticated/);
  assert.doesNotMatch(refused.err, /not-the-right-one/);
});

test('an export into a file of another kind is refused before anything is written', async () => {
  const { exitCode, err } = await troupe(['notebooks', 'export', 'nb_any', '-o', 'report.pdf']);
  assert.equal(exitCode, 2);
  assert.match(err, /cannot be written as \.pdf, only as \.py, \.ipynb, \.md, \.html/);
});

test('a file that is not UTF-8 is refused, and stored outputs of a Jupyter notebook are not sent', async () => {
  writeFileSync(join(shell.cwd, 'latin.py'), Buffer.from('# caf\xe9\nx = 1\n', 'latin1'));
  const refused = await troupe(['notebooks', 'import', 'latin.py']);
  assert.equal(refused.exitCode, 2);
  assert.match(refused.err, /latin\.py is not UTF-8 text; iconv -f latin1 -t utf-8 latin\.py/);
  const data = { 'image/png': 'x'.repeat(60_000_000) };
  const outputs = [{ output_type: 'display_data', data, metadata: {} }];
  const cell = { cell_type: 'code', source: 'x = 41', metadata: {}, outputs, execution_count: 1 };
  writeFileSync(
    join(shell.cwd, 'large.ipynb'),
    JSON.stringify({ cells: [cell], metadata: {}, nbformat: 4, nbformat_minor: 5 }),
  );
  const [notebook] = await json<Notebook[]>(['notebooks', 'import', 'large.ipynb']);
  assert.ok(notebook?.serialization.cells.some(({ code }) => code === 'x = 41'));
});
