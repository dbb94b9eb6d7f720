import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';

/** A rule of a chart, or an assumption about a kernel, with the names of the tests that hold it. */
interface Held {
  readonly rule: string;
  readonly tests: readonly string[];
}

/** A name in the source of a test. Values that are inserted stand for any text. */
const TITLE = /\btest\(\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/g;

const read = (...path: readonly string[]) => readFileSync(join(PACKAGE_ROOT, ...path), 'utf8');

test('each rule of a chart names the test that holds it', () => {
  const charts = { 'notebook-session': 'S', 'agent-session': 'A', run: 'R', environment: 'E' };
  for (const [chart, letter] of Object.entries(charts)) {
    const header = read('machines', `${chart}.ts`).split('*/', 1)[0]!.replace(/\n \*/g, '\n');
    const rules = header
      .split(new RegExp(`\\n +(?=${letter}\\d )`))
      .slice(1)
      .map(heldIn);
    assertComplete(rules, letter);
  }
});

test('each assumption about kernels names the test that holds it', () => {
  const rows = read('docs', 'decisions', 'kernel.md').match(/^\| K\d+ \|.*$/gm) ?? [];
  assertComplete(
    rows.map((row) => heldIn(row.slice(2))),
    'K',
  );
});

/** Returns the rule at the beginning of a text, and the names in quotes in its first paragraph. */
function heldIn(text: string): Held {
  const [paragraph = ''] = text.split(/\n\s*\n/);
  return {
    rule: paragraph.split(' ', 1)[0]!,
    tests: [...paragraph.matchAll(/"([^"]+)"/g)].map(([, name]) => name!),
  };
}

/** Checks that the rules have the numbers from one on, and that each names tests that exist. */
function assertComplete(rules: readonly Held[], letter: string): void {
  assert.ok(rules.length > 0);
  assert.deepEqual(
    rules.map(({ rule }) => rule),
    rules.map((_, index) => `${letter}${index + 1}`),
  );
  const titles = titlesOfTests();
  for (const { rule, tests } of rules) {
    assert.ok(tests.length > 0, `${rule} names a test`);
    for (const name of tests)
      assert.ok(
        titles.some((title) => isTitled(name, title)),
        `${rule}: there is no test "${name}"`,
      );
  }
}

/** Returns the titles of all tests, each as the texts between its inserted values. */
function titlesOfTests(): string[][] {
  const files = readdirSync(join(PACKAGE_ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => /\.test\.ts$|chart-table\.ts$/.test(file))
    .flatMap((file) => [...read('test', file).matchAll(TITLE)])
    .map(([, single, double, template]) => template?.split(/\$\{[^}]*\}/) ?? [single ?? double ?? ''])
    .filter((parts) => parts.join('').length > 12); // a title of inserted values alone would be any name
}

/** Returns whether the name has the parts of a title, in their order and with nothing before the first and after the last. */
function isTitled(name: string, [first = '', ...others]: readonly string[]): boolean {
  if (!name.startsWith(first)) return false;
  if (others.length === 0) return name === first;
  let at = first.length;
  for (const part of others) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.endsWith(others.at(-1) ?? '');
}
