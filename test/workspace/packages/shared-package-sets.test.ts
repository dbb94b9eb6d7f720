import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PackageSets } from '#src/workspace/packages/package-sets.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/store/temporary-store.ts';

/** Sets of a worker whose script metadata is the name of the only package, and whose packages have `bytes`. */
function setsOf(root: string, worker: number, maxBytes = 0, inUse: () => readonly string[] = () => []) {
  return new PackageSets({
    root,
    maxBytes,
    log: rememberingLog().log,
    others: {
      own: `start-${worker}`,
      lives: (name) => name === 'start-1',
      inUse: async () => new Set(inUse()),
    },
    installer: {
      plan: async ({ script }) => ({
        requirements: [script],
        key: `key-of-${script}`,
        notes: [],
        workspace: [],
      }),
      async install(_, folder) {
        mkdirSync(join(folder, 'site'));
        writeFileSync(join(folder, 'site', 'module.py'), 'x'.repeat(1000));
        await new Promise((resolve) => setImmediate(resolve));
        return { packages: [], replaces: false };
      },
    },
  });
}
const setsIn = (root: string) => readdirSync(root).filter((name) => !name.startsWith('.'));
const ignore = () => undefined;
const wish = (script: string) => ({ script, workspace: [], workspaceId: 'one' });

test('two workers that need the same packages at once use one set', async (t) => {
  const root = temporaryDirectory(t);
  const [first, second] = [setsOf(root, 1), setsOf(root, 2)];
  const [a, b] = await Promise.all([
    first.obtain(wish('pandas'), ignore),
    second.obtain(wish('pandas'), ignore),
  ]);
  assert.equal(a?.path, b?.path);
  assert.deepEqual(setsIn(root), ['key-of-pandas']);
});

test('a set is kept while another worker uses it', async (t) => {
  const root = temporaryDirectory(t);
  const first = setsOf(root, 1);
  const used = await first.obtain(wish('old'), ignore);
  const second = setsOf(root, 2, 2500, () => first.inUse());
  const made = await second.obtain(wish('new'), ignore);
  assert.deepEqual(setsIn(root).sort(), ['key-of-new', 'key-of-old']);
  used![Symbol.dispose]();
  made![Symbol.dispose]();
  await second.obtain(wish('newer'), ignore);
  assert.deepEqual(setsIn(root).sort(), ['key-of-new', 'key-of-newer']);
});

test('packages that conflict with packages of open sessions are refused, and their files are removed', async (t) => {
  const root = temporaryDirectory(t);
  const first = setsOf(root, 1);
  const used = await first.obtain(wish('old'), ignore);
  const second = setsOf(root, 2, 1500, () => first.inUse());
  await assert.rejects(second.obtain(wish('new'), ignore), /take more than.*TROUPE_PACKAGES_MAX_MB/);
  assert.deepEqual(setsIn(root), ['key-of-old']);
  used![Symbol.dispose]();
  await second.obtain(wish('newer'), ignore);
  assert.deepEqual(setsIn(root), ['key-of-newer']);
});

test('a worker that starts keeps sets that another worker is making, and removes those of dead workers', async (t) => {
  const root = temporaryDirectory(t);
  const names = ['start-1.new-a', 'start-7.new-b', 'earlier-1.new-c', '.new-d'].map(
    (name) => `.making-${name}`,
  );
  const workshop = join(root, '.workshop');
  for (const name of names) mkdirSync(join(workshop, name), { recursive: true });
  setsOf(root, 2);
  const made = () => readdirSync(workshop).filter((name) => name !== 'cache');
  await eventually('the others are removed', () => made().length === 1);
  assert.deepEqual(made(), ['.making-start-1.new-a']);
});
