/** Rules that keep tests steady: a test waits for facts and never for time, and leaves its process as it found it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { assertLinear } from '#test/support/growth.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Files that measure time because that is their subject. */
const MEASURED: Readonly<Record<string, string>> = {
  'test/cluster/processes.test.ts': 'repeats an outage until one is shorter than a second',
  'test/faces/console/many-actors.ts': 'compares the processor time of a thread of the browser',
  'test/datasource/keys/killed-rotation.test.ts': 'chooses the moment of a kill',
  'test/escape/flood.test.ts': 'shows the waits of a flood, and has no limit for them',
  'test/journeys/events/paced-readers.test.ts': 'reads at a chosen rate',
  'test/journeys/requests/event-loop.test.ts': 'compares processor time, alone on the machine',
  'test/journeys/runs/limits.test.ts': 'repeats a reading until the machine was quick enough for it',
};
/** Modules with a hook of their own, and why that is right. */
const HOOKS: Readonly<Record<string, string>> = {
  'test/datasource/engine-host.ts': 'its hosts end with the process',
};
/** Files that contain a program for another process. */
const PROGRAMS = ['test/escape/files.test.ts', 'test/runner/lanes.test.ts'];
/** Long checks, which `npm test` does not run as they are, and programs that run elsewhere. */
const NOT_TESTS = /^test\/(bench|compared|faults|fuzz\/(main|databases)|openapi\/programs|soak|upgrade)\b/;

interface Source {
  readonly path: string;
  readonly lines: readonly string[];
  /** The name under which the file has the `setTimeout` that returns a promise. */
  readonly sleep: string | undefined;
}

const SOURCES: readonly Source[] = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .map((name) => `test/${name}`)
  .filter((path) => path.endsWith('.ts') && path !== 'test/steady.test.ts' && !NOT_TESTS.test(path))
  .sort()
  .map((path) => sourceOf(path, readFileSync(join(ROOT, path), 'utf8')));

function sourceOf(path: string, text: string): Source {
  const [imported, name] =
    /^import \{[^}]*\bsetTimeout\b(?: as (\w+))?[^}]*\} from '(?:node:)?timers\/promises';$/m.exec(text) ??
    [];
  const sleep = imported === undefined ? undefined : (name ?? 'setTimeout');
  return { path, lines: text.split('\n'), sleep };
}

/** Returns the lines for which `isFault` returns true, each with its place. */
function faults(
  sources: readonly Source[],
  isFault: (line: string, at: number, source: Source) => boolean,
): string[] {
  return sources.flatMap((source) =>
    source.lines.flatMap((line, at) =>
      isFault(line, at, source) ? [`${source.path}:${at + 1}: ${line.trim()}`] : [],
    ),
  );
}

/** A comparison of elapsed time with an upper limit: `performance.now() - begin < 500`, `tookMs <= LIMIT_MS`. */
const BUDGET =
  /(performance|Date)\.now\(\) - [\w.!]+\)? *<|\b\w*(took|elapsed|waited|passed|after)(Ms|S)\b\)? *<|<=? *\w*(BUDGET|PATIENCE)\w*_M?S\b/;

function comparesTime(line: string): boolean {
  return /\bassert\b|\bthrow\b|&&/.test(line) && BUDGET.test(line);
}

test('no test compares elapsed time with a budget', () => {
  const found = faults(SOURCES, (line, _, { path }) => MEASURED[path] === undefined && comparesTime(line));
  assert.deepEqual(
    found,
    [],
    'wait for the fact, compare two sizes with `assertLinear`, or let a hang be the limit',
  );
});

/** Returns whether this line waits for time to pass. */
function sleeps(line: string, { sleep }: Source, next = ''): boolean {
  if (/^\s*(\/\/|\*)/.test(line)) return false;
  if (/new Promise\b.*\bsetTimeout\(/.test(line)) return true;
  if (/\bawait new Promise\b.*\{$/.test(line) && /^\s*setTimeout\(/.test(next)) return true;
  return sleep !== undefined && line.includes(`await ${sleep}(`);
}

/** Returns whether a comment in this line or just before it says why. */
function isExplained(line: string, at: number, { lines }: Source): boolean {
  return /\/\/ \w/.test(line) || /^\s*\/\/ \w/.test(lines[at - 1] ?? '');
}

test('a test that waits for time to pass says why, because otherwise it waits for a fact', () => {
  // `eventually` itself waits between its looks.
  const others = SOURCES.filter(
    ({ path }) => path !== 'test/support/processes.ts' && !PROGRAMS.includes(path),
  );
  const found = faults(
    others,
    (line, at, source) => sleeps(line, source, source.lines[at + 1]) && !isExplained(line, at, source),
  );
  assert.deepEqual(found, [], 'use `eventually`, or say in a comment why no fact can be waited for');
});

test('no loop waits for a fact without an end', () => {
  const others = SOURCES.filter(
    ({ path }) => path !== 'test/support/after-turns.ts' && !path.startsWith('test/simulation/'),
  );
  const found = faults(others, (line) => /^\s*while \(.*\) await nextTurn\(\);/.test(line));
  assert.deepEqual(found, [], 'use `eventually` or `afterTurns`, which reject with the name of the fact');
});

test('no module that several tests import registers a hook of its own, which would belong to the first of them', () => {
  const modules = SOURCES.filter(({ path }) => !path.endsWith('.test.ts') && HOOKS[path] === undefined);
  const found = faults(modules, (line) =>
    /^(if \(.*\) )?(test\.)?(after|before|afterEach|beforeEach)\(/.test(line),
  );
  assert.deepEqual(
    found,
    [],
    'let the module export a function that takes the test, and registers the hook on that',
  );
});

test('no file waits for a test at its top level, because that waits for itself inside of a suite', () => {
  assert.deepEqual(
    faults(SOURCES, (line) => /\bawait (test|it|describe)\(['`]/.test(line)),
    [],
    'leave out `await`: tests of a file run one after the other',
  );
});

test('a file that changes its process puts that back', () => {
  const changes: Readonly<Record<string, readonly [change: RegExp, back: RegExp]>> = {
    'the environment': [
      /^\s*process\.env(\.\w+|\[.+\]) = /,
      /delete process\.env|process\.env(\.\w+|\[.+\]) = (before|usual)/,
    ],
    'the folder': [/^\s*process\.chdir\(/, /process\.chdir\((before|usual)/],
    'the agent of fetch': [/^\s*setGlobalDispatcher\(/, /setGlobalDispatcher\((before|usual)/],
  };
  for (const [what, [change, back]] of Object.entries(changes)) {
    const kept = SOURCES.filter(
      ({ path, lines }) =>
        path.endsWith('.test.ts') && !PROGRAMS.includes(path) && !lines.some((line) => back.test(line)),
    );
    assert.deepEqual(
      faults(kept, (line) => change.test(line)),
      [],
      what,
    );
  }
});

test('each rule about steady tests finds a planted violation', () => {
  const source = sourceOf('a', "import { setTimeout as later } from 'node:timers/promises';");
  for (const line of [
    'assert.ok(performance.now() - startedAt < 500);',
    'assert.ok(performance.now() - startedAt <= LIMIT_MS);',
    'assert.ok(tookMs >= GRACE_MS && tookMs < GRACE_MS + 2_000);',
    'assert.ok(Math.max(...waits) < PATIENCE_MS);',
    'assert(elapsedMs < 4000, kind);',
  ])
    assert.ok(comparesTime(line), line);
  assert.ok(!comparesTime('assert.ok(tookMs >= GRACE_MS - 50);'), 'a lower limit holds on a busy machine');
  for (const form of ['setTimeout', 'setTimeout, setImmediate as turn'])
    assert.ok(
      sleeps('await setTimeout(5);', sourceOf('a', `import { ${form} } from 'timers/promises';`)),
      form,
    );
  assert.ok(sleeps('await new Promise((resolve) => {', source, '  setTimeout(resolve, 5);'));
  for (const line of ['await later(50);', 'await new Promise((resolve) => setTimeout(resolve, 5));']) {
    assert.ok(sleeps(line, source), line);
    assert.ok(!isExplained(line, 1, source), line);
    assert.ok(isExplained(`${line} // so that it is late`, 1, source), line);
  }
});

test('`assertLinear` accepts work that grows with its input, and refuses work that grows with the square of it', () => {
  const spend = (steps: number) => {
    let sum = 0;
    for (let i = 0; i < steps; i++) sum = (sum * 31 + i) % 1_000_003;
    return sum;
  };
  assertLinear('linear', 320_000, (size) => spend(size * 10));
  assert.throws(
    () => assertLinear('quadratic', 3200, (size) => spend(size * size)),
    /quadratic: a 16 times larger/,
  );
});
