/** Packages that are added to a workspace by hand, from an index on loopback. */
import assert from 'node:assert/strict';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { addMember } from '#test/support/members.ts';
import { openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { problemOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';

const PACKAGES = [
  { name: 'greeting', version: '1.0', code: 'text = "hello"' },
  { name: 'greeting', version: '2.0', code: 'text = "good day"' },
  { name: 'needing', version: '1.0', code: '', requires: ['greeting>=2'] },
  { name: 'slow', version: '1.0', code: '' },
  { name: 'slower', version: '1.0', code: '' },
  { name: 'twofold', version: '1.0', code: '' },
  { name: 'yours', version: '1.0', code: '' },
];
const index = await startPackageIndex(test, PACKAGES);
const server = await startServer(test, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: index.url });
const { client } = server;
const shell = new Shell(test, server);
const write = (name: string, text: string) => writeFileSync(join(shell.cwd, name), text);
const GREET = 'import greeting\nprint(greeting.text)';

const removeAll = async () => {
  for (const { name } of (await client.packages.list()).items) await client.packages.remove(name);
};
test.afterEach(removeAll);

/** Opens a notebook of one cell with these dependencies in its script metadata, runs it and closes it. Returns its output. */
async function run(code: string, dependencies: readonly string[] = []): Promise<string> {
  const header = `# /// script\n# dependencies = ${JSON.stringify(dependencies)}\n# ///\n`;
  const body = code.split('\n').map((line) => `    ${line}`);
  const content = `${dependencies.length > 0 ? header : ''}import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n${body.join('\n')}\n    return\n`;
  const { id: notebookId } = await client.notebooks.import({ format: 'py', content });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId });
  const session = await client.notebookSessions.waitUntilReady(notebookId);
  if (session.status === 'failed') return session.error?.message ?? '';
  const { runId } = await client.executions.submit(notebookId, { type: 'all' });
  const ended = await client.waitForRun(runId);
  await client.notebookSessions.close(notebookId);
  const [result] = results(ended);
  return ended.error?.message ?? (result === undefined ? '' : printed(result));
}

test('an added package is available to every notebook, and to open notebooks once they are reopened', async () => {
  const notebook = await openNotebook(server, { a: GREET });
  const message = async () => (await notebook.run([])).error?.message ?? '';
  assert.match(await message(), /`troupe packages add greeting`/);
  const added = await client.packages.add(['Greeting == 1.0']);
  assert.ok('installed' in added);
  assert.deepEqual(added.installed, [{ name: 'greeting', version: '1.0' }]);
  assert.deepEqual(added.openSessions, [notebook.id]);
  assert.deepEqual(
    added.items.map(({ name, requirement, createdBy }) => [name, requirement, createdBy]),
    [['greeting', 'Greeting==1.0', 'owner']],
  );
  assert.match(await message(), /has the package greeting.*open it again/);
  await notebook.close();
  assert.equal(await run(GREET), 'hello\n');
  await client.packages.remove('GREETING');
  assert.match(await run(GREET), /No module named/);
});

test("a notebook's version of a package overrides its workspace's version, and a conflict names both", async () => {
  await client.packages.add(['greeting==1.0', 'yours']);
  assert.equal(await run(`${GREET}\nimport yours`, ['greeting>=2']), 'good day\n');
  await client.packages.add(['greeting>=1', 'needing']);
  const conflict = await run(GREET, ['greeting==1.0']);
  assert.match(conflict, /needing.*greeting/);
  assert.match(conflict, /The workspace asks for .*needing/);
});

test('a text that is not a requirement, names an address or cannot be installed is refused and not added', async () => {
  const refused = (...requirements: string[]) => problemOf(client.packages.add(requirements));
  for (const wrong of [
    'greeting ==',
    'greeting @ http://127.0.0.1:1/greeting-1.0-py3-none-any.whl',
    './greeting',
    '--index-url=http://127.0.0.1:1/',
    '-r requirements.txt',
    'marimo==0.1',
  ]) {
    const { status, code } = await refused('yours', wrong);
    assert.deepEqual([status, code], [400, 'invalid_request'], wrong);
  }
  const { status, code, message } = await refused('yours', 'no-such-package');
  assert.deepEqual([status, code], [409, 'packages_not_installed']);
  assert.match(message, /no-such-package/);
  const { items, installation } = await client.packages.list();
  assert.deepEqual(items, []);
  assert.match(installation?.error ?? '', /no-such-package/);
});

test('a marker that cannot be evaluated is refused by name', async () => {
  const refused = await problemOf(client.packages.add(["greeting; os_name ~= 'posix'"]));
  assert.equal(refused.code, 'invalid_request');
  assert.match(refused.detail ?? '', /The marker of .*greeting; os_name ~= .*cannot be evaluated/);
});

test('among several lines for one package, the line for this system applies, in any position', async () => {
  await client.packages.add(["greeting==1.0; os_name == 'posix'", "greeting==2.0; os_name == 'nt'"]);
  assert.equal(await run(GREET), 'hello\n');
});

test('a request has at most 50 requirements of 300 characters, and a workspace 100 packages', async () => {
  // Packages with markers that no machine meets: the index is not asked for them.
  const some = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => `p${from + i}; python_version < "3"`);
  assert.equal((await problemOf(client.packages.add(some(0, 51)))).status, 400);
  const long = (length: number) => `p0==1.0; python_version < "3"`.padEnd(length, ' ');
  assert.equal((await problemOf(client.packages.add([long(301)]))).status, 400);
  await client.packages.add([long(300), ...some(1, 49)]);
  await client.packages.add(some(50, 50));
  await client.packages.add(['p99; python_version < "2"']); // in place of the other one
  const { status, code } = await problemOf(client.packages.add(some(100, 1)));
  assert.deepEqual([status, code], [429, 'quota_exceeded']);
  assert.equal((await client.packages.list()).items.length, 100);
});

test('an installation that takes longer than the wait continues, is shown to waiting sessions, and excludes others', async (t) => {
  const release = index.hold();
  t.after(release);
  const begun = await client.packages.add(['slow'], { wait: 0 });
  assert.ok('installation' in begun);
  assert.deepEqual(begun.installation?.requirements, ['slow']);
  const { code } = await problemOf(client.packages.add(['yours']));
  assert.equal(code, 'installation_in_progress');
  await eventually('the list says what is being done', async () =>
    (await client.packages.list()).installation?.text.includes('resolving slow'),
  );
  release();
  await eventually('the package is there', async () => (await client.packages.list()).items.length === 1);
  assert.equal((await client.packages.list()).installation, null);
});

test("record, events and command line show the current step of a session's start", async (t) => {
  const release = index.hold();
  t.after(release);
  const content =
    '# /// script\n# dependencies = ["slower"]\n# ///\nimport marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    return\n';
  const { id } = await client.notebooks.import({ format: 'py', content });
  const { environmentId } = await client.executionEnvironments.create();
  const opening = shell.start(['sessions', 'open', id, '--environment', environmentId]);
  await opening.until('resolving slower');
  const { startup, status } = await client.notebookSessions.get(id);
  assert.deepEqual([status, startup], ['starting', { phase: 'packages', text: 'resolving slower' }]);
  const told: string[] = [];
  const ready = client.notebookSessions.waitUntilReady(id, { startup: ({ text }) => told.push(text) });
  await eventually('a subscriber who comes later hears it', () => told.length === 1);
  release();
  const session = await ready;
  assert.deepEqual([session.status, session.startup], ['ready', null]);
  assert.deepEqual(told, ['resolving slower', 'installing slower 1.0']);
  assert.equal((await opening.ended).exitCode, 0);
  await client.notebookSessions.close(id);
});

test("a notebook that requires another version of Python or marimo is opened with the server's version, and the command line warns", async () => {
  const header = '# /// script\n# requires-python = ">=99"\n# dependencies = ["marimo==0.1"]\n# ///\n';
  const content = `${header}import marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    return\n`;
  const { id } = await client.notebooks.import({ format: 'py', content });
  const { exitCode, err } = await shell.troupe(['sessions', 'open', id]);
  assert.equal(exitCode, 0, err);
  assert.match(err, /asks for marimo==0\.1; this server runs marimo/);
  assert.match(err, /asks for Python >=99; this server runs 3/);
  const { kernel } = await client.notebookSessions.get(id);
  assert.equal(Object(kernel).notes.length, 2, 'the session names them as long as its kernel runs');
  await client.notebookSessions.close(id);
});

test('viewers can read and editors can change the packages of their own workspace, and the audit names the editor', async () => {
  const viewer = await addMember(server, 'viewer', 'viewer');
  const editor = await addMember(server, 'editor', 'editor');
  await editor.client.packages.add(['yours']);
  const { code } = await problemOf(viewer.client.packages.add(['greeting']));
  assert.equal(code, 'role_too_low');
  assert.equal((await problemOf(viewer.client.packages.remove('yours'))).code, 'role_too_low');
  assert.equal((await viewer.client.packages.list()).items[0]?.createdBy, 'editor');
  const stranger = server.clientOf(await server.stranger());
  assert.deepEqual((await stranger.packages.list()).items, []);
  assert.equal((await problemOf(stranger.packages.remove('yours'))).status, 404);
  await editor.client.packages.remove('yours');
  const { items } = await client.audit({ userId: 'editor' });
  assert.deepEqual(
    items.map(({ action, target }) => `${action} ${target}`),
    ['package.add yours', 'package.remove yours'],
  );
});

test('when two editors add the same package, the audit names both, and says once that it was added', async (t) => {
  const ada = await addMember(server, 'ada', 'editor');
  const ben = await addMember(server, 'ben', 'editor');
  const release = index.hold();
  t.after(release);
  const first = ada.client.packages.add(['twofold']);
  await eventually(
    'the installation has begun',
    async () => (await client.packages.list()).installation !== null,
  );
  assert.equal((await problemOf(ben.client.packages.add(['twofold']))).code, 'installation_in_progress');
  release();
  await first;
  await ben.client.packages.add(['twofold', 'yours']);
  const { items } = await client.audit({ action: 'package.add', order: 'desc', limit: 10 });
  const noted = items.filter(({ userId }) => userId === 'ada' || userId === 'ben');
  assert.deepEqual(
    noted.map(({ userId, action, target, detail }) => [userId, action, target, detail]).sort(),
    [
      ['ada', 'package.add', 'twofold', null],
      ['ben', 'package.add', 'twofold', 'already there'],
      ['ben', 'package.add', 'yours', null],
    ],
  );
  assert.deepEqual(
    (await client.packages.list()).items.map(({ name, createdBy }) => [name, createdBy]),
    [
      ['twofold', 'ada'],
      ['yours', 'ben'],
    ],
  );
});

test('a repeated request with the same key adds a package once, even after the package was removed', async () => {
  const idempotencyKey = 'add-yours';
  const first = await client.packages.add(['yours'], { idempotencyKey });
  await client.packages.remove('yours');
  assert.deepEqual(await client.packages.add(['yours'], { idempotencyKey }), first);
  assert.deepEqual((await client.packages.list()).items, []);
});

test('the command line adds, lists and removes packages, including those of a file', async () => {
  await shell.text(['packages', 'add', 'greeting>=1,<2']);
  const { items } = await shell.json<{ items: { name: string }[] }>(['packages', 'list']);
  assert.deepEqual(
    items.map(({ name }) => name),
    ['greeting'],
  );
  write('requirements.txt', '# for the report\nyours  # ours\n\nneeding; python_version < "3"\n');
  const added = await shell.json<{ installed: object[] }>(['packages', 'add', '-r', 'requirements.txt']);
  assert.equal(added.installed.length, 2);
  write('options.txt', '--no-binary :all:\n');
  assert.equal((await shell.troupe(['packages', 'add', '-r', 'options.txt'])).exitCode, 2);
  assert.equal((await shell.troupe(['packages', 'add'])).exitCode, 2);
  const wrong = await shell.troupe(['packages', 'add', 'no-such-package']);
  assert.equal(wrong.exitCode, 1);
  assert.match(wrong.err, /no-such-package/);
  assert.match(await shell.text(['packages', 'list']), /^greeting +greeting<2,>=1 +owner/m);
  await shell.text(['packages', 'remove', 'greeting', 'yours']);
  assert.equal((await shell.troupe(['packages', 'remove', 'greeting'])).exitCode, 1);
});

test('a server without installations refuses additions and gives the reason', async (t) => {
  const closed = await startServer(t);
  const { status, code, message } = await problemOf(closed.client.packages.add(['yours']));
  assert.deepEqual([status, code], [409, 'packages_disabled']);
  assert.match(message, /TROUPE_PACKAGES/);
  assert.equal((await closed.client.packages.list()).enabled, false);
});

test('kill -9 in the middle of an installation leaves none of its files, and it can be repeated', async (t) => {
  const child = await startChildServer(t, { TROUPE_PACKAGES: 'true', TROUPE_PACKAGE_INDEX: index.url });
  const folder = join(child.dataDir, 'packages');
  const release = index.hold();
  t.after(release);
  await child.client.packages.add(['yours'], { wait: 0 });
  await eventually('the installer is at work', async () =>
    (await child.client.packages.list()).installation?.text.includes('resolving'),
  );
  const workshop = join(folder, '.workshop');
  const halfMade = readdirSync(workshop).filter((name) => name.startsWith('.making-'));
  assert.equal(halfMade.length, 1);
  await child.end('SIGKILL');
  release();
  const again = await child.again();
  assert.deepEqual((await again.client.packages.list()).items, []);
  await again.client.packages.add(['yours']);
  await eventually('what was half made is gone', () => !readdirSync(workshop).includes(halfMade[0]!));
  assert.equal(readdirSync(folder).filter((name) => !name.startsWith('.')).length, 1);
});
