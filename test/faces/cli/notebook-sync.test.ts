/**
 * Files and their notebooks: no command removes the work of another person, or of its own user,
 * without being told to.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import { addMember } from '#test/support/members.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const bob = await addMember(server, 'bob', 'editor');
const shell = new Shell(test, server);
const asBob = { env: { SERVICE_ACCESS_TOKEN: bob.token } };

const write = (name: string, cells: Readonly<Record<string, string>>) =>
  writeFileSync(join(shell.cwd, name), marimoFile(cells));
const read = (name: string) => readFileSync(join(shell.cwd, name), 'utf8');

/** Pushes a file with these cells. Returns its notebook. */
async function pushed(name: string, cells: Readonly<Record<string, string>>): Promise<Notebook> {
  write(name, cells);
  return shell.json<Notebook>(['notebooks', 'push', name]);
}

/** Adds a cell as bob. */
async function addCellAsBob(id: string, code: string): Promise<Notebook> {
  const { updatedAt: expectedUpdatedAt, serialization } = await client.notebooks.get(id);
  const cells = [...serialization.cells, { cell_id: 'bobs', code, options: {} }];
  return bob.client.notebooks.update(id, { expectedUpdatedAt, serialization: { ...serialization, cells } });
}

const codesOf = async (id: string) =>
  (await client.notebooks.get(id)).serialization.cells.map(({ code }) => code);

test("running an unchanged file does not remove a colleague's cell: the run is refused with the colleague's changes and name", async () => {
  const { id } = await pushed('report.py', { show: 'print("mine")' });
  await addCellAsBob(id, 'print("from bob")');
  const refused = await shell.troupe(['run', 'report.py']);
  assert.equal(refused.exitCode, 1);
  assert.match(refused.err, /the last one was made by bob at 20/);
  assert.match(refused.err, /^ {2}\+ print\("from bob"\)$/m);
  assert.doesNotMatch(refused.err, /^ {2}[+-] print\("mine"\)$/m);
  assert.match(refused.err, /--theirs .*--force .*troupe notebooks pull report\.py/);
  assert.deepEqual(await codesOf(id), ['print("mine")', 'print("from bob")']);
  const push = await shell.troupe(['notebooks', 'push', 'report.py']);
  assert.deepEqual([push.exitCode, /from bob/.test(push.err)], [1, true]);

  const theirs = await shell.troupe(['run', 'report.py', '--theirs']);
  assert.deepEqual([theirs.exitCode, /from bob/.test(theirs.out)], [0, true]);
  assert.equal(read('report.py'), marimoFile({ show: 'print("mine")' }));

  const forced = await shell.troupe(['run', 'report.py', '--force']);
  assert.deepEqual([forced.exitCode, /from bob/.test(forced.out)], [0, false]);
  assert.deepEqual(await codesOf(id), ['print("mine")']);
  const versions = await client.notebooks.versions(id);
  assert.deepEqual([versions[1]?.updatedBy, versions[1]?.cellCount], ['bob', 2]);
});

test("after a colleague's changes are pulled into the file, the file can be pushed and run again", async () => {
  const { id } = await pushed('pulled.py', { show: 'print("mine")' });
  await addCellAsBob(id, 'print("from bob")');
  await shell.text(['notebooks', 'pull', 'pulled.py']);
  assert.match(read('pulled.py'), /from bob/);
  assert.match((await shell.troupe(['run', 'pulled.py'])).out, /from bob/);
  writeFileSync(join(shell.cwd, 'pulled.py'), read('pulled.py').replace('mine', 'changed'));
  assert.match((await shell.troupe(['notebooks', 'push', 'pulled.py'])).err, /^updated at /);
  assert.deepEqual(await codesOf(id), ['print("changed")', 'print("from bob")']);
});

test('a pull that would overwrite local edits is refused with the differences, and --theirs overwrites the edits', async () => {
  const { id } = await pushed('edited.py', { show: 'print("first")' });
  write('edited.py', { show: 'print("local")' });
  const early = await shell.troupe(['notebooks', 'pull', 'edited.py']);
  assert.equal(early.exitCode, 1, 'the notebook has nothing new');
  await addCellAsBob(id, 'print("from bob")');
  const refused = await shell.troupe(['notebooks', 'pull', 'edited.py']);
  assert.equal(refused.exitCode, 1);
  assert.match(refused.err, /^ {2}- {5}print\("local"\)$/m);
  assert.match(refused.err, /^ {2}\+ {5}print\("from bob"\)$/m);
  assert.equal(read('edited.py'), marimoFile({ show: 'print("local")' }));
  await shell.text(['notebooks', 'pull', 'edited.py', '--theirs']);
  assert.match(read('edited.py'), /from bob/);
  assert.doesNotMatch(read('edited.py'), /local/);
  write('unknown.py', { show: 'print("never pushed")' });
  const unlinked = await shell.troupe(['notebooks', 'pull', 'unknown.py', '--notebook', id]);
  assert.equal(unlinked.exitCode, 1);
  assert.match(read('unknown.py'), /never pushed/);
});

test("a file never becomes another person's notebook of the same title, and never gets the secrets of that notebook", async () => {
  const { id } = await pushed('shared.py', { show: 'print("mine")' });
  await client.notebooks.setSecret(id, 'TOKEN', 'hush');
  const other = new Shell(test, server);
  writeFileSync(
    join(other.cwd, 'shared.py'),
    marimoFile({ show: 'import os\nprint(os.environ.get("TOKEN"))' }),
  );
  const ran = await other.troupe(['run', 'shared.py'], asBob);
  assert.match(ran.out, /None/, ran.err);
  assert.deepEqual(await codesOf(id), ['print("mine")']);
  for (const args of [
    ['notebooks', 'pull', 'shared.py'],
    ['notebooks', 'secrets', 'list', 'shared.py'],
  ])
    assert.doesNotMatch((await other.troupe(args, asBob)).out, new RegExp(id));
  assert.equal(
    (await bob.client.notebooks.list({ title: 'shared', order: 'desc' })).items[0]?.createdBy,
    'bob',
  );
});

test('a second file with the same title and user becomes a separate notebook', async () => {
  const { id } = await pushed('twice.py', { show: 'print(1)' });
  const { mkdirSync } = await import('node:fs');
  mkdirSync(join(shell.cwd, 'other'));
  const second = await pushed('other/twice.py', { show: 'print(2)' });
  assert.notEqual(second.id, id);
  assert.deepEqual(await codesOf(id), ['print(1)']);
  const again = await shell.json<Notebook>(['notebooks', 'push', 'twice.py']);
  assert.equal(again.id, id);
});

test('a change outside of the code, such as a variable, is not lost by a push or a run', async () => {
  const { id } = await pushed('settings.py', { show: 'import os\nprint(os.environ["REGION"])' });
  const { updatedAt: expectedUpdatedAt } = await client.notebooks.get(id);
  await bob.client.notebooks.update(id, { expectedUpdatedAt, variables: { REGION: 'eu' } });
  const ran = await shell.troupe(['run', 'settings.py']);
  assert.deepEqual([ran.exitCode, /eu/.test(ran.out)], [0, true], ran.err);
  assert.match((await shell.troupe(['notebooks', 'push', 'settings.py'])).err, /nothing has changed/);
});

test('on a machine without a memory of files, a file replaces changes of its own user only', async () => {
  const { id } = await pushed('moved.py', { show: 'print(1)' });
  const elsewhere = () => ({ env: { XDG_STATE_HOME: join(shell.cwd, `.state-${Math.random()}`) } });
  write('moved.py', { show: 'print(2)' });
  await shell.text(['notebooks', 'push', 'moved.py'], elsewhere());
  assert.deepEqual(await codesOf(id), ['print(2)']);
  await addCellAsBob(id, 'print("from bob")');
  const refused = await shell.troupe(['notebooks', 'push', 'moved.py'], elsewhere());
  assert.deepEqual([refused.exitCode, /from bob/.test(refused.err)], [1, true]);
});

test('a damaged or unwritable memory of files is a warning, not a failure', async () => {
  const place = join(shell.cwd, 'not-a-folder');
  writeFileSync(place, '');
  write('unremembered.py', { show: 'print("runs")' });
  const ran = await shell.troupe(['run', 'unremembered.py'], { env: { XDG_STATE_HOME: place } });
  assert.deepEqual([ran.exitCode, /runs/.test(ran.out)], [0, true]);
  assert.match(ran.err, /the notebook of unremembered\.py cannot be remembered: /);
});

test('an .ipynb is compared by its cells, and not by outputs that another program has stored', async () => {
  const cell = (source: string, outputs: readonly unknown[]) => ({
    cell_type: 'code',
    source,
    metadata: {},
    outputs,
    execution_count: outputs.length,
  });
  const jupyter = (source: string, outputs: readonly unknown[] = []) =>
    JSON.stringify({ cells: [cell(source, outputs)], metadata: {}, nbformat: 4, nbformat_minor: 5 });
  writeFileSync(join(shell.cwd, 'lab.ipynb'), jupyter('print(1)'));
  const { id } = await shell.json<Notebook>(['notebooks', 'push', 'lab.ipynb']);
  writeFileSync(
    join(shell.cwd, 'lab.ipynb'),
    jupyter('print(1)', [{ output_type: 'stream', name: 'stdout', text: '1\n' }]),
  );
  assert.match((await shell.troupe(['notebooks', 'push', 'lab.ipynb'])).err, /nothing has changed/);
  await addCellAsBob(id, 'print("from bob")');
  await shell.text(['notebooks', 'pull', 'lab.ipynb']);
  assert.match(read('lab.ipynb'), /from bob/);
});

test('a run uses the open session of its notebook, with the variables of the session, and leaves the session open', async () => {
  const { id } = await pushed('open.py', {
    load: 'import os\nkept = os.environ["REGION"]',
    show: 'print(kept)',
  });
  await shell.text(['notebooks', 'variables', 'set', 'open.py', 'REGION=eu']);
  await shell.text(['sessions', 'open', id]);
  const ran = await shell.troupe(['run', 'open.py']);
  assert.deepEqual([ran.exitCode, /eu/.test(ran.out)], [0, true], ran.err);
  assert.match(ran.err, new RegExp(`open\\.py is open as ${id}\nusing the open session`));
  assert.equal((await client.notebookSessions.get(id)).status, 'ready');
  assert.equal((await client.notebooks.list({ title: 'open' })).items.length, 1);
});

test('while a session with other code is open, a run has a copy with variables, secrets and datasources, which is deleted afterwards', async () => {
  const { id } = await pushed('busy.py', { show: 'print("old")' });
  await shell.text(['notebooks', 'variables', 'set', 'busy.py', 'REGION=eu']);
  await shell.text(['notebooks', 'secrets', 'set', 'busy.py', 'TOKEN'], { input: 'hush\n' });
  await shell.text(['sessions', 'open', id]);
  write('busy.py', { show: 'import os\nprint(os.environ["REGION"], len(os.environ["TOKEN"]))' });
  const before = (await client.notebooks.list({ limit: 100 })).items.length;
  const ran = await shell.troupe(['run', 'busy.py', '-o', 'busy.html']);
  assert.deepEqual([ran.exitCode, /eu 4/.test(ran.out)], [0, true], ran.err);
  assert.match(ran.err, /A session with other code is open on nb_\w+\. This run has a copy of its own/);
  assert.match(read('busy.html'), /eu 4/);
  assert.deepEqual(await codesOf(id), ['print("old")']);
  assert.equal((await client.notebooks.list({ limit: 100 })).items.length, before);
  await shell.text(['notebooks', 'variables', 'list', 'busy.py']); // exactly one notebook has this title
});

test('several runs of one file at once, with different parameters, all succeed and leave nothing behind', async () => {
  const { id } = await pushed('months.py', {
    show: 'import marimo as mo\nimport time\ntime.sleep(0.5)\nprint("month", mo.cli_args()["month"])',
  });
  const months = [1, 2, 3, 4];
  const runs = await Promise.all(
    months.map((month) => shell.troupe(['run', 'months.py', '-p', `month=${month}`])),
  );
  for (const [index, { exitCode, out, err }] of runs.entries())
    assert.deepEqual([exitCode, out.includes(`month ${months[index]}`)], [0, true], err);
  const { items } = await client.notebooks.list({ title: 'months' });
  assert.deepEqual(
    items.map((notebook) => notebook.id),
    [id],
  );
  const open = (await client.notebookSessions.list()).items.filter(({ title }) => title === 'months');
  assert.deepEqual(
    open.filter(({ status }) => status !== 'closed'),
    [],
  );
  // Now with a new file that nobody has pushed, and with the id of a notebook.
  write('years.py', { show: 'import marimo as mo\nprint("year", mo.cli_args()["year"])' });
  const news = await Promise.all(
    months.map((year) => shell.troupe(['run', 'years.py', '-p', `year=${year}`])),
  );
  for (const [index, { exitCode, out, err }] of news.entries())
    assert.deepEqual([exitCode, out.includes(`year ${months[index]}`)], [0, true], err);
  assert.equal((await client.notebooks.list({ title: 'years' })).items.length, 1);
  const byId = await Promise.all(months.map((month) => shell.troupe(['run', id, '-p', `month=${month}`])));
  assert.deepEqual(
    byId.map(({ exitCode }) => exitCode),
    [0, 0, 0, 0],
    byId.map(({ err }) => err).join('\n'),
  );
  assert.equal((await client.notebooks.list({ title: 'months' })).items.length, 1);
});

test('pip commands of an .ipynb are shown as warnings, and --install turns them into dependencies, also in later pushes', async () => {
  const jupyter = (source: string) => {
    const cell = { cell_type: 'code', source, metadata: {}, outputs: [], execution_count: null };
    return JSON.stringify({ cells: [cell], metadata: {}, nbformat: 4, nbformat_minor: 5 });
  };
  writeFileSync(join(shell.cwd, 'pip.ipynb'), jupyter('!pip install humanize>=4 -e .\nprint("runs")'));
  const ran = await shell.troupe(['run', 'pip.ipynb']);
  assert.deepEqual([ran.exitCode, /runs/.test(ran.out)], [0, true], ran.err);
  assert.match(ran.err, /^warning: pip\.ipynb: Cells ask pip for humanize>=4\. .*--install/m);
  assert.match(ran.err, /^warning: pip\.ipynb: .*not name a package, and have no effect: -e \./m);
  const headerOf = async (args: readonly string[]) => {
    const { serialization } = await shell.json<Notebook>(['notebooks', 'push', 'pip.ipynb', ...args]);
    return serialization.app.options.header;
  };
  assert.equal(await headerOf([]), undefined);
  assert.match(String(await headerOf(['--install'])), /humanize>=4/);
  writeFileSync(join(shell.cwd, 'pip.ipynb'), jupyter('!pip install humanize>=4\nprint("again")'));
  assert.match(String(await headerOf([])), /humanize>=4/);
  const [imported] = await shell.json<Notebook[]>(['notebooks', 'import', 'pip.ipynb']);
  assert.equal(imported?.title, 'pip');
});
