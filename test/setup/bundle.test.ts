import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { checkout, importSetup, REPOSITORY } from './checkout.ts';

test('the bundle of a package has the same exports as the package, for every entry', async () => {
  const source = join(REPOSITORY, 'node_modules', 'typebox');
  const bundled = join(REPOSITORY, 'dist', 'node_modules', 'typebox');
  const entriesOf = (folder: string): Record<string, { default: string } | string> =>
    JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).exports;
  const [real, ours] = [entriesOf(source), entriesOf(bundled)];
  assert.deepEqual(Object.keys(ours), Object.keys(real));
  const namesOf = async (folder: string, entry: { default: string } | string | undefined) => {
    const file = typeof entry === 'object' ? entry.default : String(entry);
    return Object.keys(await import(pathToFileURL(join(folder, file)).href)).toSorted();
  };
  for (const entry of Object.keys(real)) {
    assert.deepEqual(await namesOf(bundled, ours[entry]), await namesOf(source, real[entry]), entry);
  }
});

test('a program is bundled with everything that it imports on demand, and chunks of an older bundle are removed', async (t) => {
  const { root, write } = checkout(t);
  write('dist/src/main.js', "export const later = () => import('./one.js');\n");
  write('dist/src/one.js', 'export const one = 1;\n');
  write('dist/server/chunks/old.js', '');
  const { bundle } = await importSetup('bundle');
  await bundle(root);
  const { later } = await import(pathToFileURL(join(root, 'dist/server/main.js')).href);
  assert.equal((await later()).one, 1);
  assert.equal(existsSync(join(root, 'dist/server/chunks/old.js')), false);
});
