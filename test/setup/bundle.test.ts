// tier: whole, because it performs set-ups and builds
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join } from 'node:path';
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

test('a program is bundled with everything that it imports on demand, and an older bundle is removed', async (t) => {
  const { root, write } = checkout(t);
  write('dist/src/start/main.js', "export const later = () => import('./one.js');\n");
  write('dist/src/start/one.js', 'export const one = 1;\n');
  write('dist/server/main-OLD.cjs', '');
  write('dist/server/main-OLD.cjs.cache', '');
  const { bundle } = await importSetup('bundle');
  await bundle(root);
  const { program } = await import(pathToFileURL(join(root, 'dist/server/main.js')).href);
  assert.equal((await program.exports.later()).one, 1);
  const files = readdirSync(join(root, 'dist/server')).map((name) =>
    name.replace(/-[A-Z0-9]{8}\./, '-<hash>.'),
  );
  assert.deepEqual(files.toSorted(), ['main-<hash>.cjs', 'main-<hash>.cjs.map', 'main.js']);
});

test('in a bundled program, `import.meta.url` is the URL of the started file', async (t) => {
  const { root, write } = checkout(t);
  write('dist/src/start/main.js', 'export const place = import.meta.url;\n');
  const { bundle } = await importSetup('bundle');
  await bundle(root);
  const started = pathToFileURL(join(root, 'dist/server/main.js')).href;
  assert.equal((await import(started)).program.exports.place, started);
});

test('the bundles are ASCII, and every external package has a CommonJS entry, which `require` needs', () => {
  const folder = join(REPOSITORY, 'dist/server');
  const require = createRequire(join(folder, 'main.js'));
  const bundles = readdirSync(folder).filter((name) => name.endsWith('.cjs'));
  assert.equal(bundles.length, 3);
  for (const name of bundles) {
    const bytes = readFileSync(join(folder, name));
    assert.ok(
      bytes.every((byte) => byte < 0x80),
      name,
    );
    const packages = [...bytes.toString('latin1').matchAll(/\brequire\("([^".:]+)"\)/g)].map(
      ([, name]) => name!,
    );
    assert.ok(packages.includes('koffi'));
    for (const name of packages) if (!isBuiltin(name)) assert.ok(isCommonJs(require.resolve(name)), name);
  }
});

function isCommonJs(file: string): boolean {
  if (!file.endsWith('.js')) return file.endsWith('.cjs');
  let folder = dirname(file);
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).type !== 'module';
}
