import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The directory of this repository. */
export const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

/** Imports a module of set-up. It has no types, because set-up runs before anything is compiled. */
export function importSetup(name: string) {
  return import(join(REPOSITORY, 'src', 'setup', `${name}.mjs`));
}

/** Returns a small checkout in a new directory: the real compiler and packages, one pinned Python package, two sources. */
export function checkout(t: TestContext): { root: string; write: (path: string, text: string) => void } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'troupe-setup-')));
  t.after(() => rmSync(root, { recursive: true }));
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  };
  const packages = { 'node_modules/left': { version: '1.0.0', integrity: 'sha512-x' } };
  const elsewhere = { 'node_modules/left-win32': { version: '1.0.0', optional: true, os: ['win32'] } };
  write('package.json', '{"type":"module"}');
  write('package-lock.json', JSON.stringify({ packages: { '': {}, ...packages, ...elsewhere } }));
  write('node_modules/.package-lock.json', JSON.stringify({ packages }));
  for (const name of readdirSync(join(REPOSITORY, 'node_modules'))) {
    if (name.startsWith('.') && name !== '.bin') continue;
    symlinkSync(join(REPOSITORY, 'node_modules', name), join(root, 'node_modules', name));
  }
  write('src/confined/python/requirements.txt', '# pinned\nPy_Yaml.x==6.0.3\n');
  write('.venv/lib/python3.11/site-packages/py_yaml_x-6.0.3.dist-info/METADATA', '');
  const compilerOptions = { module: 'nodenext', rootDir: '.', outDir: 'dist', sourceMap: true, types: [] };
  write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src'] }));
  write('src/one.ts', 'export const one: number = 1;\n');
  write('src/two.ts', 'export const two: number = 2;\n');
  return { root, write };
}
