import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { cellsOf } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { marimoFile } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const { troupe, json, text } = shell;

const notebookTitled = (title: string) =>
  client.notebooks.create({ title, serialization: { cells: cellsOf({ a: 'x = 1' }) } });

/** Returns marimo's page, which the page to which a one-time address leads shows in a frame. */
async function pageAt(address: string): Promise<string> {
  const entered = await fetch(address, { redirect: 'manual' });
  assert.equal(entered.status, 303, await entered.text());
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] ?? '';
  const around = new URL(entered.headers.get('location') ?? '', address);
  const page = await fetch(new URL('page/', around), { headers: { cookie } });
  assert.equal(page.status, 200);
  return page.text();
}

/** Returns the environment of a machine with a display, on which this script takes the place of `xdg-open`. */
function displayWith(script: string) {
  const bin = join(shell.cwd, 'bin');
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, 'xdg-open'), 0o755);
  return { DISPLAY: ':0', PATH: `${bin}:${process.env.PATH}` };
}

test('open finds a notebook by its id, its title or its file, and its address leads to the page', async () => {
  const { id } = await notebookTitled('Sales in March');
  writeFileSync(join(shell.cwd, 'costs.py'), marimoFile({ load: 'x = 41' }));
  const pushed = await text(['notebooks', 'push', 'costs.py']);
  for (const [name, notebookId] of [
    [id, id],
    ['Sales in March', id],
    ['sales in', id],
    ['costs.py', pushed],
  ] as const) {
    const address = await text(['open', name, '--print']);
    assert.ok(address.startsWith(`${server.baseUrl}/n/${notebookId}/open/`), address);
    assert.match(await pageAt(address), /<marimo-/);
  }
  assert.deepEqual((await client.notebookSessions.get(id)).mode, 'edit');
});

test('open makes a notebook from a file without a notebook, and finds that notebook the next time', async () => {
  writeFileSync(join(shell.cwd, 'fresh.py'), marimoFile({ load: 'x = 42' }));
  const first = await troupe(['open', 'fresh.py', '--print']);
  assert.equal(first.exitCode, 0, first.err);
  const [, id = ''] = /^fresh\.py is now the notebook (nb_\w+)\.$/m.exec(first.err) ?? [];
  assert.ok(first.out.startsWith(`${server.baseUrl}/n/${id}/open/`), first.out);
  const again = await json<{ notebookId: string }>(['open', 'fresh.py']);
  assert.equal(again.notebookId, id);
});

test('open prints the address when the machine has no display, and with --json', async () => {
  const { id } = await notebookTitled('Printed');
  const { exitCode, out, err } = await troupe(['open', id]);
  assert.deepEqual([exitCode, out.startsWith(`${server.baseUrl}/n/${id}/open/`)], [0, true]);
  assert.match(err, /^No browser can be started here: this machine has no display\. Open this address:\n$/);
  const page = await json<{ notebookId: string; url: string; access: string }>(['open', id]);
  assert.deepEqual([page.notebookId, page.access], [id, 'edit']);
  assert.match(await pageAt(page.url), /<marimo-/);
});

test('the arguments of the browser contain no address, only the name of a file that only its user can read', async () => {
  const { id } = await notebookTitled('Shown');
  const env = displayWith(`printf %s "$1" > '${join(shell.cwd, 'opened')}'`);
  const { exitCode, out, err } = await troupe(['open', id], { env });
  assert.deepEqual([exitCode, out, err], [0, '', `${id} is open in the browser.\n`]);
  const file = fileURLToPath(readFileSync(join(shell.cwd, 'opened'), 'utf8'));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const [, address = ''] = /url=(http[^"]+)"/.exec(readFileSync(file, 'utf8')) ?? [];
  assert.match(await pageAt(address), /<marimo-/);
});

test('open prints the address when the browser cannot be started', async () => {
  const { id } = await notebookTitled('Not shown');
  const { exitCode, out, err } = await troupe(['open', id], { env: displayWith('exit 3') });
  assert.deepEqual([exitCode, out.startsWith(`${server.baseUrl}/n/${id}/open/`)], [0, true]);
  assert.match(err, /xdg-open has failed\. Open this address/);
});

test('open --app shows outputs without code, and is refused while a session that shows the code is open', async () => {
  const { id } = await notebookTitled('App');
  await text(['open', id, '--app', '--print']);
  assert.equal((await client.notebookSessions.get(id)).mode, 'run');
  await text(['open', id, '--app', '--print']);
  const other = await notebookTitled('Edited');
  await text(['open', other.id, '--print']);
  const refused = await troupe(['open', other.id, '--app', '--print']);
  assert.deepEqual([refused.exitCode, refused.out], [1, '']);
  assert.match(refused.err, new RegExp(`mode edit .*leave --app out.*troupe sessions close ${other.id}`));
});

test('a title of no notebook or of several is refused, and the error says how to find the notebook', async () => {
  const missing = await troupe(['open', 'Nobody wrote this']);
  assert.deepEqual([missing.exitCode, missing.out], [1, '']);
  assert.match(missing.err, /No notebook has the title Nobody wrote this: troupe notebooks list/);
  const ids = [(await notebookTitled('Twice')).id, (await notebookTitled('Twice')).id];
  await notebookTitled('Twice as much');
  const several = await troupe(['open', 'Twice']);
  assert.deepEqual([several.exitCode, several.out], [2, '']);
  for (const id of ids) assert.ok(several.err.includes(id), several.err);
  assert.doesNotMatch(several.err, /as much/);
  const unpushed = await troupe(['open', 'unpushed.py']);
  assert.match(
    unpushed.err,
    /There is no file unpushed\.py here, and no notebook of yours belongs to it: give a file/,
  );
});
