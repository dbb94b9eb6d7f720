// tier: test, because it starts lanes
/** Runs small test files in lanes of their own, in a folder that looks like a checkout. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import type { TestFile, Tier } from './files.ts';
import { type FileResult, runInLanes } from './lanes.ts';
import { run } from './main.ts';

const HEAD = `import assert from 'node:assert/strict'; import test from 'node:test';\n`;
const LONG_MS = 120_000;

/** Returns a checkout with these compiled test files, by name. */
function checkout(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'troupe-lanes-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  mkdirSync(join(root, 'dist/test'), { recursive: true });
  mkdirSync(join(root, 'node_modules/.bin'), { recursive: true });
  symlinkSync(import.meta.dirname, join(root, 'dist/test/runner'));
  writeFileSync(join(root, 'package.json'), '{"type": "module"}');
  writeFileSync(join(root, 'node_modules/.bin/biome'), '#!/bin/sh\n');
  chmodSync(join(root, 'node_modules/.bin/biome'), 0o755);
  for (const [name, code] of Object.entries(files))
    writeFileSync(join(root, `dist/test/${name}.test.js`), HEAD + code);
  return root;
}

function fileOf(name: string, more: Partial<TestFile> = {}): TestFile {
  return {
    path: `test/${name}.test.ts`,
    tier: 'test',
    runsIn: 'lane',
    ownHost: false,
    alone: false,
    ...more,
  };
}

/** Runs the files in one lane, in this order, and returns how each ended. */
async function inOneLane(root: string, files: readonly TestFile[], limitMs = LONG_MS): Promise<FileResult[]> {
  const results: FileResult[] = [];
  const onEnd = (result: FileResult) => void results.push(result);
  await runInLanes(files, { root, lanes: 1, limitMs, env: {}, python: 'python3', onEnd });
  return results;
}

const outcomes = (result: FileResult | undefined) =>
  result?.tests.map(({ name, outcome }) => `${outcome}: ${name}`);

test('a lane runs one file after the other, and each test is reported with its file', async (t) => {
  const root = checkout(t, {
    first: `test('of process ' + process.pid, () => {}); test('is skipped', { skip: 'there is no moon' }, () => {});`,
    second: `test('of process ' + process.pid, async (t) => { await t.test('within another', () => {}); });`,
  });
  const [first, second] = await inOneLane(root, [fileOf('first'), fileOf('second')]);
  const [process] = outcomes(first)!;
  assert.match(process!, /^passed: of process \d+$/);
  assert.deepEqual(outcomes(first), [process, 'skipped: is skipped']);
  assert.equal(first!.tests[1]!.text, 'there is no moon');
  assert.deepEqual(outcomes(second), ['passed: within another', process]);
});

test('a failed test is reported with its difference, and the lane continues', async (t) => {
  const root = checkout(t, {
    bad: `test('one is two', () => assert.equal(1, 2)); test('another', () => {});`,
    good: `test('is run', () => {});`,
  });
  const [bad, good] = await inOneLane(root, [fileOf('bad'), fileOf('good')]);
  assert.deepEqual(outcomes(bad), ['failed: one is two', 'passed: another']);
  assert.match(bad!.tests[0]!.text!, /1 !== 2/);
  assert.deepEqual(outcomes(good), ['passed: is run']);
});

test('a file that cannot be imported has failed', async (t) => {
  const root = checkout(t, { bad: `throw new Error('no such thing');` });
  const [bad] = await inOneLane(root, [fileOf('bad')]);
  assert.deepEqual(outcomes(bad), ['failed: test/bad.test.ts']);
  assert.match(bad!.tests[0]!.text!, /no such thing/);
});

test('hooks of a file run when the file ends, before the next one', async (t) => {
  const root = checkout(t, {
    first: `test('runs', () => {}); test.after(() => { globalThis.ended = true; });`,
    second: `test('the first has ended', () => assert.equal(globalThis.ended, true));`,
  });
  const [, second] = await inOneLane(root, [fileOf('first'), fileOf('second')]);
  assert.deepEqual(outcomes(second), ['passed: the first has ended']);
});

test('a lane puts back what a file changed for the whole process, and names it', async (t) => {
  const root = checkout(t, {
    first: `test('changes much', () => {
      process.env.TROUPE_LEFT = 'behind'; delete process.env.PATH; process.chdir('/'); process.umask(0o777);
      globalThis[Symbol.for('undici.globalDispatcher.1')] = {};
    });
    test('mocks a clock twice', (t) => {
      t.mock.method(Date, 'now', () => 1); t.mock.method(Date, 'now', () => 2);
    });`,
    second: `test('finds what was', () => {
      assert.equal(process.env.TROUPE_LEFT, undefined); assert.ok(process.env.PATH);
      assert.notEqual(process.cwd(), '/'); assert.notEqual(process.umask(), 0o777);
      assert.notDeepEqual(globalThis[Symbol.for('undici.globalDispatcher.1')], {});
      assert.ok(Date.now() > 2);
    });`,
  });
  const [first, second] = await inOneLane(root, [fileOf('first'), fileOf('second')]);
  assert.deepEqual(outcomes(second), ['passed: finds what was']);
  assert.deepEqual([...first!.notes].sort(), [
    'leaves another agent of fetch',
    'leaves another umask',
    'leaves another working directory',
    'leaves now replaced',
    'leaves process.env.PATH changed',
    'leaves process.env.TROUPE_LEFT changed',
  ]);
});

test('a file that has moved new ids ahead of the clock is the last one of its lane', async (t) => {
  const ids = join(import.meta.dirname, '../../src/base/ids.js');
  const root = checkout(t, {
    first: `const { newId } = await import('${ids}'); test('has a later clock', () => void newId('run', Date.now() + 60_000));`,
    second: `const { newId, timeOfId } = await import('${ids}');
      test('has the time of now', () => assert.ok(timeOfId(newId('run')) < Date.now() + 1_000));`,
  });
  const [, second] = await inOneLane(root, [fileOf('first'), fileOf('second')]);
  assert.deepEqual(outcomes(second), ['passed: has the time of now']);
});

test('a file that ends its lane has failed, and the remaining files run in another lane', async (t) => {
  const root = checkout(t, {
    bad: `test('ends all', () => process.exit(3));`,
    good: `test('is run', () => {});`,
  });
  const [bad, good] = await inOneLane(root, [fileOf('bad'), fileOf('good')]);
  assert.deepEqual(outcomes(bad)?.at(-1), 'failed: the lane of the file continues');
  assert.match(bad!.tests.at(-1)!.text!, /exit code 3/);
  assert.deepEqual(outcomes(good), ['passed: is run']);
});

test('a file is ended if no test of it begins or ends within the limit, and its running tests and processes are named', async (t) => {
  const root = checkout(t, {
    bad: `import { spawn } from 'node:child_process'; test('ends', () => {}); test('hangs', () => { spawn('sleep', ['1234']); return new Promise(() => setInterval(() => {}, 1000)); });`,
    good: `test('is run', () => {});`,
  });
  const [bad, good] = await inOneLane(root, [fileOf('bad'), fileOf('good')], 10_000);
  const failed = bad!.tests.find(({ outcome }) => outcome === 'failed');
  assert.equal(failed!.name, 'a test begins or ends every 10 s');
  assert.match(failed!.text!, /^It still runs: hangs\nProcesses below it:/);
  assert.match(failed!.text!, /sleep 1234/);
  assert.deepEqual(outcomes(good), ['passed: is run']);
});

test('a file may take longer than the limit while its tests go on', async (t) => {
  const wait = '() => new Promise((resolve) => setTimeout(resolve, 4_000))';
  const root = checkout(t, { slow: `for (const name of ['a', 'b', 'c']) test(name, ${wait});` });
  const [slow] = await inOneLane(root, [fileOf('slow')], 10_000);
  assert.ok(slow!.ms > 10_000);
  assert.deepEqual(outcomes(slow), ['passed: a', 'passed: b', 'passed: c']);
});

test('the output of a file is shown with that file', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const print = (name: string) => `test('prints', () => console.log('printed by ${name}'));`;
  const root = checkout(t, Object.fromEntries(names.map((name) => [name, print(name)])));
  const results = await inOneLane(
    root,
    names.map((name) => fileOf(name)),
  );
  assert.deepEqual(
    results.map(({ output }) => output),
    names.map((name) => `printed by ${name}\n`),
  );
});

test('an error that comes outside of the tests fails its file', async (t) => {
  const root = checkout(t, {
    bad: `test('goes on after its end', () => { globalThis.late = setTimeout(() => { throw new Error('late'); }, 0); });
      test('waits for it', () => new Promise((resolve) => setTimeout(resolve, 300)));`,
  });
  const [bad] = await inOneLane(root, [fileOf('bad')]);
  assert.ok(
    bad!.tests.some(({ outcome, text }) => outcome === 'failed' && text?.includes('late')),
    JSON.stringify(bad),
  );
});

test('a file with a process of its own shares nothing, and fails if that process does', async (t) => {
  const root = checkout(t, {
    lane: `test('of process ' + process.pid, () => {});`,
    own: `test('of process ' + process.pid, () => {});`,
    bad: `test('passes', () => {}); process.on('exit', () => { process.exitCode = 7; });`,
  });
  const files = [fileOf('lane'), fileOf('own', { runsIn: 'process' }), fileOf('bad', { runsIn: 'process' })];
  const [lane, own, bad] = await inOneLane(root, files);
  assert.notEqual(lane!.tests[0]!.name, own!.tests[0]!.name);
  assert.deepEqual(outcomes(bad), ['passed: passes', 'failed: the process of the file ends with code 0']);
});

/** Runs a whole tier that has one file, which fails until it has run `failures` times. Returns the output and the verdict. */
async function verdictOf(t: TestContext, tier: Tier, failures: number) {
  const root = checkout(t, {
    moody: `import { appendFileSync, readFileSync } from 'node:fs';
      test('has its moods', () => { appendFileSync('runs', 'x'); assert.ok(readFileSync('runs').length > ${failures}); });`,
  });
  const stage = { name: 'tests', files: [fileOf('moody', { tier })], lanes: 1, env: {} };
  const lines: string[] = [];
  const ok = await run(root, { tier, stages: [stage], flags: [], isEverything: true }, (line) =>
    lines.push(line),
  );
  return { ok, text: lines.join('\n') };
}

test('in npm test a file that fails once fails the run, and the output says that it passed again', async (t) => {
  const { ok, text } = await verdictOf(t, 'test', 1);
  assert.equal(ok, false);
  assert.match(text, /FAILED {2}test\/moody\.test\.ts \(it passed when it was repeated\)/);
  assert.match(text, /npm test -- --test-name-pattern='has its moods' test\/moody\.test\.ts/);
});

test('in npm run whole a file that fails twice of three times is unsteady, and fails nothing', async (t) => {
  const { ok, text } = await verdictOf(t, 'whole', 2);
  assert.equal(ok, true);
  assert.match(text, /unsteady {2}test\/moody\.test\.ts/);
  assert.match(text, /1 files? (is|are) unsteady/);
});

test('in npm run whole a file that fails three times of three fails the run', async (t) => {
  const { ok, text } = await verdictOf(t, 'whole', 3);
  assert.equal(ok, false);
  assert.match(text, /FAILED {2}test\/moody\.test\.ts \(3 times of 3\)/);
});
