import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { folderOfGlob, globMatcher } from '#src/faces/cli/run/glob.ts';
import { localImports } from '#src/faces/cli/run/local-imports.ts';

test('a pattern matches the same names as in a shell', () => {
  const cases: readonly [string, readonly string[], readonly string[]][] = [
    ['*.csv', ['a.csv', 'ä ö.csv'], ['.csv', '.a.csv', 'a/b.csv', 'a.csvx', 'acsv']],
    ['data/?.txt', ['data/a.txt'], ['data/ab.txt', 'data/.txt', 'other/a.txt']],
    ['out/**', ['out/a', 'out/b/c'], ['out', 'out/.hidden', 'out/.git/x']],
    ['**/*.py', ['a.py', 'x/y/a.py'], ['x/.git/a.py']],
    ['[a-c]*.{csv,txt}', ['a.csv', 'bcd.txt'], ['d.csv', 'a.png']],
    ['[!a]x', ['bx'], ['ax', '/x']],
    ['a+(b).$', ['a+(b).$'], ['aab.$']],
    ['{*.csv,report}', ['a.csv', 'report'], ['a.txt']],
  ];
  for (const [pattern, matched, others] of cases) {
    const matches = globMatcher(pattern);
    for (const path of matched) assert.ok(matches(path), `${pattern} matches ${path}`);
    for (const path of others) assert.ok(!matches(path), `${pattern} does not match ${path}`);
  }
  assert.deepEqual(['*.csv', 'a/b*/c', 'a/{b,c}', 'a/b/[c]'].map(folderOfGlob), ['', 'a/', 'a/', 'a/b/']);
});

test('modules next to a notebook are found together with the modules that they import, including packages and folders', () => {
  const directory = mkdtempSync(join(tmpdir(), 'troupe-imports-'));
  test.after(() => rmSync(directory, { recursive: true, force: true }));
  const files = {
    'one.py': 'import two as _two',
    'two.py': '',
    'package/__init__.py': '',
    'package/deep/inner.py': 'from three import (\n  name,\n)',
    'three.py': '',
    'spaces/four.py': '',
    'unused.py': '',
    'data/numbers.csv': '',
  };
  for (const [name, code] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), code);
  }
  const code = 'import os; import one\nfrom package.deep import inner\nif x:\n    import spaces.four, data';
  assert.deepEqual(localImports(code, directory), ['one.py', 'package', 'spaces', 'three.py', 'two.py']);
});
