import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PackageSets } from '#src/packages/package-sets.ts';
import { eventually } from '#test/support/processes.ts';
import { rememberingLog, temporaryDirectory } from '#test/support/temporary-store.ts';

/** Sets of a worker whose script metadata is the name of the only package, and whose packages have `bytes`. */
function setsOf(root: string, worker: number, maxBytes = 0, inUse: () => readonly string[] = () => []) {
  return new PackageSets({
    root,
    maxBytes,
    log: rememberingLog().log,
    others: { worker, inUse: async () => new Set(inUse()) },
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
const ignore = () => undefined;
const wish = (script: string) => ({ script, workspace: [] });

test('two workers that need the same packages at once both get the one set', async (t) => {
  const root = temporaryDirectory(t);
  const [first, second] = [setsOf(root, 1), setsOf(root, 2)];
  const [a, b] = await Promise.all([
    first.obtain(wish('pandas'), ignore),
    second.obtain(wish('pandas'), ignore),
  ]);
  assert.equal(a?.path, b?.path);
  assert.deepEqual(readdirSync(root), ['key-of-pandas']);
});

test('a set that another worker uses stays, and goes once it does not', async (t) => {
  const root = temporaryDirectory(t);
  const first = setsOf(root, 1);
  const used = await first.obtain(wish('old'), ignore);
  const second = setsOf(root, 2, 1500, () => first.inUse());
  const made = await second.obtain(wish('new'), ignore);
  assert.deepEqual(readdirSync(root).sort(), ['key-of-new', 'key-of-old']);
  used![Symbol.dispose]();
  made![Symbol.dispose]();
  await second.obtain(wish('newer'), ignore);
  assert.deepEqual(readdirSync(root), ['key-of-newer']);
});

test('a worker that starts leaves what another one is making, and removes what was left behind long ago', async (t) => {
  const root = temporaryDirectory(t);
  for (const name of ['.making-1-young', '.making-1-old']) mkdirSync(join(root, name));
  const longAgo = Date.now() / 1000 - 7200;
  utimesSync(join(root, '.making-1-old'), longAgo, longAgo);
  setsOf(root, 2);
  await eventually('the old one is removed', () => readdirSync(root).length === 1);
  assert.deepEqual(readdirSync(root), ['.making-1-young']);
});
