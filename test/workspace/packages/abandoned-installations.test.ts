// tier: whole, because it builds and installs packages
/** Installations that nobody waits for any more, and the limit of simultaneous installations. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PackageSets } from '#src/workspace/packages/package-sets.ts';
import { descendants, eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/store/temporary-store.ts';

const ignore = () => undefined;
const setsIn = (root: string) => readdirSync(root).filter((name) => !name.startsWith('.'));
const wish = (script: string, workspaceId = 'one') => ({ script, workspace: [], workspaceId });

/** Sets whose installations continue until they are released or aborted. */
function heldSets(root: string) {
  const begun: { readonly name: string; readonly release: () => void }[] = [];
  const sets = new PackageSets({
    root,
    maxBytes: 0,
    log: rememberingLog().log,
    installer: {
      plan: async ({ script }) => ({ requirements: [script], key: script, notes: [], workspace: [] }),
      install: ([name = ''], folder, _, signal) =>
        new Promise((resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('broken off')));
          const release = () => {
            mkdirSync(join(folder, 'site'));
            writeFileSync(join(folder, 'site', 'module.py'), '');
            resolve({ packages: [], replaces: false });
          };
          begun.push({ name, release });
        }),
    },
  });
  const names = () => begun.map(({ name }) => name);
  return { sets, names, release: (name: string) => begun.findLast((one) => one.name === name)!.release() };
}

test('an installation continues until the last session that waits for it has left', async (t) => {
  const root = temporaryDirectory(t);
  const { sets, names, release } = heldSets(root);
  const [first, second] = [new AbortController(), new AbortController()];
  const leaving = sets.obtain(wish('a'), ignore, first.signal);
  const staying = sets.obtain(wish('a'), ignore, second.signal);
  await eventually('it has begun', () => names().length === 1);
  first.abort();
  await assert.rejects(leaving, /Nobody waits/);
  release('a');
  (await staying)![Symbol.dispose]();
  assert.deepEqual([names(), setsIn(root)], [['a'], ['a']]);
});

test('a session that leaves before its missing packages are known starts no installation', async (t) => {
  const root = temporaryDirectory(t);
  const { sets, names } = heldSets(root);
  await assert.rejects(sets.obtain(wish('a'), ignore, AbortSignal.abort()), /Nobody waits/);
  assert.deepEqual([names(), setsIn(root)], [[], []]);
});

test('packages that are requested again while their installation is being stopped are installed again', async (t) => {
  const root = temporaryDirectory(t);
  const { sets, names, release } = heldSets(root);
  const gone = new AbortController();
  const leaving = sets.obtain(wish('a'), ignore, gone.signal);
  await eventually('it has begun', () => names().length === 1);
  gone.abort();
  const again = sets.obtain(wish('a'), ignore);
  await assert.rejects(leaving, /Nobody waits/);
  await eventually('it has begun again', () => names().length === 2);
  release('a');
  (await again)![Symbol.dispose]();
  const unfinished = () => readdirSync(join(root, '.workshop')).filter((name) => name.startsWith('.making-'));
  await eventually('the first is removed', () => unfinished().length === 0);
});

const WAITING = 'waiting for other installations';

test('two installations of a workspace run at once and a third one waits, and another workspace does not wait for them', async (t) => {
  const { sets, names, release } = heldSets(temporaryDirectory(t));
  const said: string[] = [];
  const tell = (text: string) => said.push(text);
  const all = ['a', 'b', 'c'].map((name) => sets.obtain(wish(name), tell));
  await eventually('the third is told', () => said.includes(WAITING));
  assert.deepEqual(names(), ['a', 'b']);
  const others = sets.obtain(wish('d', 'two'), (text) => assert.notEqual(text, WAITING));
  await eventually('that of the other workspace has begun', () => names().length === 3);
  assert.deepEqual(names(), ['a', 'b', 'd']);
  release('b');
  (await all[1])![Symbol.dispose]();
  await eventually('the third has begun', () => names().length === 4);
  for (const name of ['a', 'c', 'd']) release(name);
  for (const set of await Promise.all([...all, others])) set![Symbol.dispose]();
});

test('three installations run at once, and workspaces that wait for a place take turns', async (t) => {
  const { sets, names, release } = heldSets(temporaryDirectory(t));
  const said: string[] = [];
  const obtain = (workspace: string) => (name: string) =>
    sets.obtain(wish(name, workspace), (text) => said.push(text));
  const waiting = (count: number) => () => said.filter((text) => text === WAITING).length === count;
  const all = [...['a1', 'a2', 'a3', 'a4', 'a5'].map(obtain('one')), obtain('two')('b1')];
  await eventually('three have begun', () => names().length === 3);
  await eventually('three wait', waiting(3));
  all.push(...['b2', 'b3'].map(obtain('two')), obtain('three')('c1'));
  await eventually('six wait', waiting(6));
  assert.deepEqual(names(), ['a1', 'a2', 'b1']);
  for (let ended = 0; ended < all.length; ended++) {
    release(names()[ended]!);
    await eventually('the next has begun', () => names().length === Math.min(all.length, ended + 4));
  }
  assert.deepEqual(names(), ['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4', 'b3', 'a5']);
  for (const set of await Promise.all(all)) set![Symbol.dispose]();
});

test('an installation that two workspaces wait for begins in the first turn of one of them, and takes one place', async (t) => {
  const { sets, names, release } = heldSets(temporaryDirectory(t));
  const said: string[] = [];
  const first = ['a', 'b', 'c', 'd'].map((name) => sets.obtain(wish(name), (text) => said.push(text)));
  await eventually('two wait', () => said.filter((text) => text === WAITING).length === 2);
  const joined = sets.obtain(wish('c', 'two'), ignore);
  await eventually('it has begun', () => names().length === 3);
  assert.deepEqual(names(), ['a', 'b', 'c']);
  release('a');
  await eventually('the next one has begun', () => names().length === 4);
  for (const name of ['b', 'c', 'd']) release(name);
  for (const set of await Promise.all([...first, joined])) set![Symbol.dispose]();
});

test('closing a session ends the installer that only this session waits for, and removes its files', async (t) => {
  const index = await startPackageIndex(t, [{ name: 'slow', version: '1.0', code: '' }]);
  const { client, dataDir, pid } = await startServer(t, {
    TROUPE_PACKAGES: 'true',
    TROUPE_PACKAGE_INDEX: index.url,
  });
  const root = join(dataDir, 'packages');
  const release = index.hold();
  t.after(release);
  const content =
    '# /// script\n# dependencies = ["slow"]\n# ///\nimport marimo\napp = marimo.App()\n\n@app.cell\ndef _():\n    1\n    return\n';
  const { id: notebookId } = await client.notebooks.import({ format: 'py', content });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId, environmentId });
  const installers = () => descendants(pid).filter(({ name }) => name === 'uv');
  await eventually('the installer runs', () => installers().length > 0);
  await client.notebookSessions.close(notebookId);
  await eventually('the installer has ended', () => installers().length === 0);
  const rest = () =>
    readdirSync(root, { recursive: true }).filter((name) => !/^\.workshop(\/cache)?$/.test(String(name)));
  await eventually('nothing of it stays', () => rest().length === 0);
});
