import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { testFiles } from './files.ts';
import { select } from './main.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Returns a checkout with these files below test/. */
function checkout(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'troupe-files-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'test/confined/python'), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, 'test', path)), { recursive: true });
    writeFileSync(join(root, 'test', path), text);
  }
  return root;
}

const tiersOf = (root: string) => Object.fromEntries(testFiles(root).map(({ path, tier }) => [path, tier]));

test('a file that starts nothing is quick, a file that reaches a server is not, and a mark takes precedence', (t) => {
  const root = checkout(t, {
    'unit.test.ts': `import { add } from './add.ts';`,
    'journey.test.ts': `import { open } from './open.ts';`,
    'open.ts': `import { startServer } from '#test/support/server-fixture.ts';`,
    'attack.test.ts': '// tier: whole, because it attacks\n',
    'confined/python/test_a.py': '"""A test."""\n',
    'confined/python/test_b.py': '# tier: whole, because it fills memory\n',
  });
  assert.deepEqual(tiersOf(root), {
    'test/unit.test.ts': 'quick',
    'test/journey.test.ts': 'test',
    'test/attack.test.ts': 'whole',
    'test/confined/python/test_a.py': 'test',
    'test/confined/python/test_b.py': 'whole',
  });
});

test('the first lines of a file say which processes and hosts it does not share', (t) => {
  const root = checkout(t, {
    'a.test.ts':
      '// tier: whole, because it measures\n// own process: it counts calls\n// runs alone: it keeps both processors busy\n',
    'b.test.ts': '// own kernel host: it ends the host\n',
  });
  const [a, b] = testFiles(root);
  assert.deepEqual([a?.runsIn, a?.alone, a?.ownHost], ['process', true, false]);
  assert.deepEqual([b?.runsIn, b?.alone, b?.ownHost], ['lane', false, true]);
  assert.equal(
    testFiles(checkout(t, { 'a.test.ts': '// tier: whole, because it kills\n' }))[0]?.runsIn,
    'process',
  );
});

test('a mark that nobody reads is refused with the name of its file', (t) => {
  const unknown = checkout(t, { 'a.test.ts': '// tier: long, because it takes long\n' });
  assert.throws(() => testFiles(unknown), /test\/a\.test\.ts.*quick, test, whole/);
  const without = checkout(t, { 'a.test.ts': '// tier: whole\n' });
  assert.throws(() => testFiles(without), /test\/a\.test\.ts.*reason/);
  for (const mark of [
    '// own proces: it counts calls',
    '// runs alone because it is large',
    '// own process:',
  ]) {
    const misspelt = checkout(t, { 'a.test.ts': `// tier: whole, because it kills\n${mark}\n` });
    assert.throws(() => testFiles(misspelt), {
      message: `test/a.test.ts has a mark that cannot be read: ${mark}`,
    });
  }
  const beside = checkout(t, { 'a.test.ts': '// runs alone: it is large\n' });
  assert.throws(() => testFiles(beside), /runs alone, which only a file of the tier whole can/);
});

test('paths and tiers that do not exist are refused in a sentence', () => {
  assert.throws(() => select(ROOT, ['test/nothing.test.ts']), /test\/nothing\.test\.ts does not exist/);
  assert.throws(() => select(ROOT, ['--tier=slow']), /There is no tier slow/);
  assert.throws(() => select(ROOT, ['test/support']), /No test file matches/);
});

test('every file of a tier runs in one of the two commands that CI runs', () => {
  const all = testFiles(ROOT).map(({ path }) => path);
  const run = ['test', 'whole'].flatMap((tier) =>
    select(ROOT, [`--tier=${tier}`]).stages.flatMap(({ files }) => files.map(({ path }) => path)),
  );
  assert.deepEqual(
    all.filter((path) => !run.includes(path)),
    [],
  );
});

test('options go to the runner of Node.js, and a named file runs whatever its tier', () => {
  const { flags, stages } = select(ROOT, ['--test-name-pattern=x', 'test/soak/soak.test.ts']);
  assert.deepEqual(flags, ['--test-name-pattern=x']);
  assert.deepEqual(
    stages.flatMap(({ files }) => files.map(({ path }) => path)),
    ['test/soak/soak.test.ts'],
  );
});
