/** Installations for which nobody waits any more, and how many there are at once. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PackageSets } from '#src/packages/package-sets.ts';
import { descendants, eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startPackageIndex } from '#test/support/stand-ins/package-index.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/store/temporary-store.ts';

const ignore = () => undefined;
const wish = (script: string) => ({ script, workspace: [] });

/** Sets whose installations go on until they are released or broken off. */
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

test('an installation goes on until the last session that waits for it has left', async (t) => {
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
  assert.deepEqual([names(), readdirSync(root)], [['a'], ['a']]);
});

test('a session that leaves before its missing packages are known begins no installation', async (t) => {
  const root = temporaryDirectory(t);
  const { sets, names } = heldSets(root);
  await assert.rejects(sets.obtain(wish('a'), ignore, AbortSignal.abort()), /Nobody waits/);
  assert.deepEqual([names(), readdirSync(root)], [[], []]);
});

test('packages that are wanted again while their installation is being broken off are installed anew', async (t) => {
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
  await eventually('the first is removed', () => readdirSync(root).length === 1);
});

test('three installations go on at once, and the others wait for their turn', async (t) => {
  const { sets, names, release } = heldSets(temporaryDirectory(t));
  const said: string[] = [];
  const all = ['a', 'b', 'c', 'd'].map((name) => sets.obtain(wish(name), (text) => said.push(text)));
  await eventually('three have begun', () => names().length === 3);
  await eventually('the fourth is told', () => said.includes('waiting for other installations'));
  assert.deepEqual(names(), ['a', 'b', 'c']);
  release('b');
  (await all[1])![Symbol.dispose]();
  await eventually('the fourth has begun', () => names().length === 4);
  for (const name of ['a', 'c', 'd']) release(name);
  for (const set of await Promise.all(all)) set![Symbol.dispose]();
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
  await eventually('nothing of it stays', () => readdirSync(root).length === 0);
});
