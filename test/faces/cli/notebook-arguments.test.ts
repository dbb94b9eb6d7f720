import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { refuseUnreached } from '#src/faces/cli/run/notebook-arguments.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const shell = new Shell(test, server);
const write = (name: string, cells: Readonly<Record<string, string>>) =>
  writeFileSync(join(shell.cwd, name), marimoFile(cells));

test('run -p and everything after -- are the arguments of the notebook', async () => {
  write('report.py', { show: 'import marimo as mo\nprint(sorted(mo.cli_args().to_dict().items()))' });
  const shown = async (...args: string[]) => (await shell.troupe(['run', 'report.py', ...args])).out;
  assert.match(
    await shown('-p', 'month=3', '-p', 'who=a b', '--parameter', 'dry'),
    /\[\('dry', ''\), \('month', 3\), \('who', 'a b'\)\]/,
  );
  assert.match(await shown('-p', 'month=3', '--', '--year', '2026'), /\[\('month', 3\), \('year', 2026\)\]/);
  for (const wrong of [['-p', '=3'], ['-p', '--month=3'], ['-p', ''], ['another.py']]) {
    const { exitCode, err } = await shell.troupe(['run', 'report.py', ...wrong]);
    assert.equal(exitCode, 2, err);
  }
});

test('a run does not use a session that is open with other arguments, but a copy of the notebook, which is deleted afterwards', async () => {
  write('open.py', { show: 'import marimo as mo\nprint(mo.cli_args())' });
  assert.equal((await shell.troupe(['run', 'open.py', '-p', 'month=3', '--keep'])).exitCode, 0);
  const [{ sessionId = '' } = {}] = await shell.json<{ sessionId: string }[]>([
    'sessions',
    'list',
    '--title',
    'open',
  ]);
  const same = await shell.troupe(['run', '--notebook', sessionId, '--', '--month=3']);
  assert.equal(same.exitCode, 0, same.err);
  const other = await shell.troupe(['run', '--notebook', sessionId, '-p', 'month=4']);
  assert.deepEqual([other.exitCode, /'month': 4/.test(other.out)], [0, true], other.err);
  assert.match(other.err, /A session with other arguments is open on the notebook\. This run has a copy/);
  assert.equal((await shell.json<object[]>(['notebooks', 'list', '--title', 'open'])).length, 1);
});

test('variables of a notebook are set, listed and deleted, by file or id', async () => {
  write('vars.py', { show: 'import os\nprint(os.environ["REGION"], os.environ["EQ"])' });
  const { id } = await shell.json<{ id: string }>(['notebooks', 'push', 'vars.py']);
  await shell.text(['notebooks', 'variables', 'set', 'vars.py', 'REGION=eu', 'EQ=a=b', 'OLD=1']);
  await shell.text(['notebooks', 'variables', 'set', id, 'REGION=us']);
  await shell.text(['notebooks', 'variables', 'delete', id, 'OLD']);
  assert.deepEqual(await shell.json(['notebooks', 'variables', 'list', 'vars.py']), {
    REGION: 'us',
    EQ: 'a=b',
  });
  assert.match((await shell.troupe(['run', 'vars.py'])).out, /us a=b/);
  assert.equal((await shell.troupe(['notebooks', 'variables', 'delete', id, 'OLD'])).exitCode, 1);
  assert.equal((await shell.troupe(['notebooks', 'variables', 'set', id, 'no-name'])).exitCode, 2);
});

test('a secret comes from standard input and is never shown', async () => {
  write('secret.py', { show: 'import os\nprint(len(os.environ["TOKEN"]))' });
  const { id } = await shell.json<{ id: string }>(['notebooks', 'push', 'secret.py']);
  const set = await shell.troupe(['notebooks', 'secrets', 'set', 'secret.py', 'TOKEN'], {
    input: 'hush hush\n',
  });
  assert.equal(set.exitCode, 0, set.err);
  assert.doesNotMatch(set.out + set.err, /hush/);
  assert.match((await shell.troupe(['run', 'secret.py'])).out, /^ *9$/m);
  assert.match(await shell.text(['notebooks', 'secrets', 'list', id]), /TOKEN/);
  assert.equal(
    (await shell.troupe(['notebooks', 'secrets', 'set', id, 'EMPTY'], { input: '\n' })).exitCode,
    2,
  );
  await shell.troupe(['notebooks', 'secrets', 'delete', id, 'TOKEN']);
  assert.deepEqual(await shell.json(['notebooks', 'secrets', 'list', id]), []);
});

test('versions of a notebook are listed with their authors, shown, and restored', async () => {
  write('history.py', { show: '"first"' });
  const first = await shell.json<{ id: string; updatedAt: string }>(['notebooks', 'push', 'history.py']);
  write('history.py', { show: '"second"' });
  await shell.text(['notebooks', 'push', 'history.py']);
  const list = await shell.text(['notebooks', 'versions', 'list', 'history.py']);
  assert.match(list, /CHANGED BY .*\n.* owner .*current\n.* owner /);
  assert.match(list, new RegExp(first.updatedAt));
  const shown = await shell.text(['notebooks', 'versions', 'show', first.id, first.updatedAt]);
  assert.match(shown, /"first"/);
  await shell.text(['notebooks', 'versions', 'restore', 'history.py', first.updatedAt]);
  assert.match(await shell.text(['notebooks', 'export', first.id]), /"first"/);
  const [, replaced] = await shell.json<{ updatedAt: string }[]>(['notebooks', 'versions', 'list', first.id]);
  const second = await shell.text(['notebooks', 'versions', 'show', first.id, replaced!.updatedAt]);
  assert.match(second, /"second"/);
});

/** Writes a Jupyter notebook with a cell that has the tag `parameters`, and a cell that uses its names. */
function writeMill(name: string, parameters: string, use: string): void {
  const cell = (source: string, tags: readonly string[]) => ({
    cell_type: 'code',
    source,
    metadata: { tags },
    outputs: [],
    execution_count: null,
  });
  const cells = [cell(parameters, ['parameters']), cell(use, [])];
  const notebook = { cells, metadata: {}, nbformat: 4, nbformat_minor: 5 };
  writeFileSync(join(shell.cwd, name), JSON.stringify(notebook));
}

test("papermill's parameters cell takes -p, even when the notebook is imported again for the run", async () => {
  writeMill('mill.ipynb', 'month = 1\nregion = "eu"', 'print(month + 1, region)');
  assert.match((await shell.troupe(['run', 'mill.ipynb'])).out, /^ *2 eu$/m);
  assert.match((await shell.troupe(['run', '--rm', 'mill.ipynb', '-p', 'month=3'])).out, /^ *4 eu$/m);
});

// The expected values are those that papermill 2.6 gives.
for (const [parameters, use, given, printed] of [
  ['%matplotlib inline\nmonth = 1', 'print(month + 1)', 'month=3', '4'],
  ['%%time\nmonth = 1', 'print(month + 1)', 'month=3', '4'],
  ['month, year = 1, 2025', 'print(month, year)', 'year=2026', '1 2026'],
  ['month: int', 'print(month)', 'month=3', '3'],
  ['import os\nif os.name:\n    month = 1', 'print(month)', 'month=3', '3'],
] as const) {
  test(`-p reaches the parameters cell ${JSON.stringify(parameters)}`, async () => {
    writeMill('kind.ipynb', parameters, use);
    const { out, err, exitCode } = await shell.troupe(['run', '--rm', 'kind.ipynb', '-p', given]);
    assert.deepEqual([exitCode, new RegExp(`^ *${printed}$`, 'm').test(out)], [0, true], out + err);
  });
}

test('an argument of -p that no cell takes is an error, and nothing runs', async () => {
  writeMill('typo.ipynb', 'month = 1', 'print("ran")');
  const typo = await shell.troupe(['run', 'typo.ipynb', '-p', 'mnth=3']);
  assert.deepEqual([typo.exitCode, typo.out.includes('ran')], [2, false]);
  assert.match(typo.err, /takes no argument mnth\. Its cell with the tag parameters sets month\./);
  write('deaf.py', { show: 'print("ran")' });
  const deaf = await shell.troupe(['run', 'deaf.py', '-p', 'month=3']);
  assert.equal(deaf.exitCode, 2);
  assert.match(deaf.err, /takes no argument month\. Its cells do not read arguments/);
  assert.equal((await shell.troupe(['run', 'deaf.py', '--', '--month', '3'])).exitCode, 0);
});

test('code that reads the command line itself may take any argument of -p', () => {
  for (const code of [
    'mo.cli_args()',
    'import sys\nsys.argv',
    'from argparse import ArgumentParser',
    'import typer',
  ])
    refuseUnreached(['--month=3'], ['x = 1', code]);
  assert.throws(() => refuseUnreached(['--month=3'], ['x = 1']), { exitCode: 2 });
  refuseUnreached([], ['x = 1']);
});
