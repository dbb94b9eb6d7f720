// `npm test`: runs the set-up, lint, the Python tests and the Node.js tests. A failed stage does not stop the others.
// With arguments it runs only those test files or folders, such as `test/auth`, `test/config.test.ts` or
// `test/kernel-host/test_frames.py`. With `TROUPE_TEST_WORKERS=3` and no arguments it runs all that can be run against a server of
// so many workers (`worker-tests.mjs`). Arguments that begin with a hyphen are passed to the Node.js test runner.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import * as clientGenerators from './client-generators.mjs';
import { reporting, SetupError, say } from './console.mjs';
import * as pythonClient from './python-client.mjs';
import { ROOT, setUp } from './setup.mjs';
import { filesBelow } from './stamps.mjs';
import { testsForWorkers } from './worker-tests.mjs';

const FAILED_TESTS = new URL('failed-tests.mjs', import.meta.url).href;
const WHAT_HOLDS = new URL('what-holds.mjs', import.meta.url).href;
const FILE_TIMES = new URL('file-times.mjs', import.meta.url).href;
const FILE_TIMEOUT_MS = 300_000;
const PYTHON_TESTS = 'test/kernel-host';
/** Steps of the set-up that only some tests need, and those tests. */
const STEPS_OF_TESTS = [
  {
    step: clientGenerators,
    tests: /^dist\/test\/(openapi\/(generated|stream)|mcp\/python)-clients\.test\.js$/,
  },
  { step: pythonClient, tests: /^dist\/test\/(client-python\/|mcp\/python-agents\.)/ },
];
/**
 * Journeys that also run against a server of several workers each time, because requests meet in
 * them or live state is shared. The others do so when TROUPE_TEST_WORKERS is set. Races between
 * workers (`test/cluster/races`) and their deaths (`test/faults`) have several workers in any case.
 */
const JOURNEYS_OF_WORKERS = `
  agents/agents agents/agents-notebooks events/actor-events events/event-tickets events/observing
  events/reconnect notebooks/environments notebooks/notebook-secrets notebooks/notebook-session-ends
  notebooks/notebook-sessions notebooks/notebooks notebooks/notebooks-refused
  notebooks/sleeping-sessions notebooks/structural-errors requests/conditions requests/control
  requests/idempotency requests/idempotency-callers requests/inspection requests/lists
  requests/object-access requests/revocation runs/cancel runs/counted-work runs/execution-requests
  runs/executions runs/runs runs/waiting server/metrics workspaces/audit workspaces/file-quota
  workspaces/files workspaces/workspace-deletion
`
  .trim()
  .split(/\s+/)
  .map((name) => `dist/test/journeys/${name}.test.js`);
/** Journeys, attacks and notebooks that also run with their kernels on a node, which is another process of this machine. */
const FILES_ON_NODES = `
  corpus/notebooks escape/as-an-ordinary-user journeys/code/code-results journeys/events/large-outputs
  journeys/notebooks/kernel-death journeys/notebooks/outputs journeys/runs/cancel journeys/runs/executions
  journeys/runs/printed-text
`
  .trim()
  .split(/\s+/)
  .map((name) => `dist/test/${name}.test.js`);
/**
 * Tests that run alone. `event-loop` compares processor time with a limit: while other tests fill the processor's caches and use
 * its memory bandwidth, the same work takes up to twice as long. The other files start several servers or many processes and keep
 * both processors busy by themselves; next to other tests, their waits would take minutes.
 */
const ALONE = `
  escape/databases escape/processes escape/set-ups faults/faults faults/recorded faults/worker-deaths journeys/requests/event-loop journeys/events/paced-readers
  package/server-package platforms/platforms
`
  .trim()
  .split(/\s+/)
  .map((name) => `dist/test/${name}.test.js`);
/**
 * Tests spend a third of their time waiting for processes and clocks, so the number of files that
 * run at once is one more than the number of processors.
 */
const FILES_AT_ONCE = availableParallelism() + 1;
const WORKERS = '3';
const isCi = process.env.CI === 'true';
process.env.TROUPE_TEST_FILE_LIMIT_MS = String(FILE_TIMEOUT_MS);
/** The file in which tests that run into their limit describe their state (`what-holds.mjs`). */
const HELD = join(tmpdir(), `troupe-held-${process.pid}`);
process.env.TROUPE_TEST_HELD = HELD;
/** The file in which each test file notes how long it took (`file-times.mjs`). */
const TIMES = join(tmpdir(), `troupe-times-${process.pid}`);
process.env.TROUPE_TEST_TIMES = TIMES;
const SLOWEST_FILES = 15;
/** If more files than this have failed, their tests do not run again, because chance is an unlikely cause. */
const MAX_REPEATED_FILES = 5;
const REPETITIONS = 3;
const isOnNodes = process.env.TROUPE_TEST_NODES === '1';
const isForWorkers = (process.env.TROUPE_TEST_WORKERS ?? '1') !== '1';

const { nodeTests, pythonTests, flags, everything } = await reporting(() => select(process.argv.slice(2)));
const needed = STEPS_OF_TESTS.filter(({ tests }) => nodeTests.some((file) => tests.test(file)));
await reporting(() =>
  setUp(
    ROOT,
    needed.map(({ step }) => ifPossible(step)),
  ),
);
const results = [];
if (everything && !isForWorkers)
  await stage('lint', join(ROOT, 'node_modules', '.bin', 'biome'), ['check', '.']);
const nextFiles = pythonTests.values();
await Promise.all(Array.from({ length: availableParallelism() }, () => runPythonTests(nextFiles)));
const together = nodeTests.filter((file) => !ALONE.includes(file));
const alone = nodeTests.filter((file) => ALONE.includes(file));
if (together.length > 0)
  await runNodeTests('Node.js tests', together, isForWorkers ? undefined : FILES_AT_ONCE);
if (alone.length > 0) await runNodeTests('Node.js tests that run alone', alone, 1);
const journeys = JOURNEYS_OF_WORKERS.filter((file) => nodeTests.includes(file));
if (everything && !isForWorkers && journeys.length > 0) {
  process.env.TROUPE_TEST_WORKERS = WORKERS;
  await runNodeTests(`journeys with ${WORKERS} workers`, journeys);
}
const onNodes = FILES_ON_NODES.filter((file) => nodeTests.includes(file));
if (everything && !isForWorkers && !isOnNodes && onNodes.length > 0) {
  process.env.TROUPE_TEST_WORKERS = '1';
  process.env.TROUPE_TEST_NODES = '1';
  await runNodeTests('journeys with kernels on a node', onNodes);
}
for (const { name, ok, flaky, seconds, failed = [] } of results) {
  say(
    `${ok ? 'passed' : 'FAILED'}  ${name} (${seconds} s)${flaky ? ', and passed in every repetition' : ''}`,
  );
  for (const test of failed) say(`        ${test}`);
}
if (everything) for (const line of slowestFiles()) say(line);
rmSync(TIMES, { force: true });
if (existsSync(HELD)) say(readFileSync(HELD, 'utf8').trimEnd());
rmSync(HELD, { force: true });
if (results.some(({ flaky }) => flaky))
  say('a test that fails only sometimes has a mistake in it, or finds one in the code: the run has failed');
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;

/** Runs files one after the other, each as a stage. Calls that run side by side take their next file from the same iterator. */
async function runPythonTests(files) {
  const python = process.env.TROUPE_PYTHON || join(ROOT, '.venv', 'bin', 'python');
  for (const file of files) {
    const args = ['-m', 'unittest', 'discover', '-s', PYTHON_TESTS, '-p', basename(file)];
    await stageWithRepetitions(basename(file), () => [python, args], { isBesideOthers: true });
  }
}

/** Runs compiled test files as one stage, `atOnce` of them at a time. */
async function runNodeTests(name, files, atOnce = availableParallelism()) {
  const failures = join(tmpdir(), `troupe-failed-${process.pid}`);
  const optionsFor = (concurrency) => [
    '--conditions=development',
    '--enable-source-maps',
    `--import=${WHAT_HOLDS}`,
    `--import=${FILE_TIMES}`,
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...[`--test-reporter=${FAILED_TESTS}`, `--test-reporter-destination=${failures}`],
    // The limit is for one file. A test that hangs must fail, with the name of its file.
    `--test-timeout=${FILE_TIMEOUT_MS}`,
    `--test-concurrency=${concurrency}`,
    ...flags,
    '--test',
  ];
  await stageWithRepetitions(
    name,
    (isAgain) => {
      // The runner reports source files, because it reads the source maps.
      const named = isAgain ? failedTests(failures).join('\n') : '';
      const failed = files.filter((file) => named.includes(file.slice('dist/'.length, -'.js'.length)));
      const chosen = failed.length > 0 ? failed : files;
      return [process.execPath, [...optionsFor(isAgain ? 1 : atOnce), ...chosen]];
    },
    { report: failures, atOnce },
  );
  rmSync(failures, { force: true });
}

/** Reads which tests failed, as `file: name of the test`, each followed by its error; none when the runner could not write its report. */
function failedTests(report) {
  if (!existsSync(report)) return [];
  return readFileSync(report, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => line.replace(`${ROOT}/`, ''));
}

/** Returns the slowest test files with their seconds. */
function slowestFiles() {
  if (!existsSync(TIMES)) return [];
  const lines = readFileSync(TIMES, 'utf8').trim().split('\n');
  const slowest = lines.sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a)).slice(0, SLOWEST_FILES);
  return [
    'the slowest files, in seconds',
    ...slowest.map((line) => `        ${line.replace(`${ROOT}/`, '')}`),
  ];
}

/** Returns the step so that it reports a failure, and continues: only the tests that need it fail then. */
function ifPossible(step) {
  return {
    ...step,
    async perform(root, keepOpen) {
      try {
        await step.perform(root, keepOpen);
      } catch (error) {
        if (!(error instanceof SetupError)) throw error;
        say(error.message);
      }
    },
  };
}

/** Returns the tests that the arguments select; all of them when there are none. */
function select(args) {
  const flags = args.filter((arg) => arg.startsWith('-'));
  const named = args.filter((arg) => !arg.startsWith('-')).map((arg) => relative(ROOT, resolve(arg)));
  const sources = filesBelow(ROOT, 'test', '.test.ts');
  const python = filesBelow(ROOT, PYTHON_TESTS, '.py').filter((file) => /\/test_\w+\.py$/.test(file));
  for (const path of named)
    if (!existsSync(join(ROOT, path))) throw new SetupError(`${path} does not exist.`);
  const chosen = (file) =>
    named.length === 0 || named.some((path) => file === path || file.startsWith(`${path}/`));
  const tests = isForWorkers && named.length === 0 ? testsForWorkers(sources) : sources.filter(chosen);
  const nodeTests = tests.map((file) => `dist/${file.replace(/\.ts$/, '.js')}`);
  const pythonTests = isForWorkers ? [] : python.filter(chosen);
  if (nodeTests.length + pythonTests.length === 0)
    throw new SetupError('No test file matches these arguments.');
  return { nodeTests, pythonTests, flags, everything: named.length === 0 };
}

/**
 * Runs a stage. If some tests fail, the stage has failed; their files run again, to tell whether they always fail. A failure
 * that needs load would pass alone, so the repetitions are run at the same time where the stage ran several files at once.
 */
async function stageWithRepetitions(name, commandFor, { report, atOnce = 1, isBesideOthers = false } = {}) {
  const first = await stage(name, ...commandFor(false), isBesideOthers);
  if (first.ok) return;
  first.failed = report === undefined ? [] : failedTests(report);
  // A file that runs into its limit is named by its compiled file too.
  const sourceOf = (test) => test.split(':', 1)[0].replace(/^dist\/(.*)\.js$/, '$1.ts');
  const isName = (line) => !line.startsWith(' ');
  const files = new Set(first.failed.filter(isName).map(sourceOf)).size;
  if (report !== undefined && (files === 0 || files > MAX_REPEATED_FILES)) return;
  const times = isCi ? REPETITIONS : 1;
  say(`${name}: something failed; the failed files run again, to see whether they always fail`);
  const command = commandFor(true);
  const repeat = async (time) =>
    (await stage(`${name}, repetition ${time} of ${times}`, ...command, isBesideOthers)).ok;
  const repetitions = [];
  for (let time = 1; time <= times; time++) {
    const repetition = repeat(time);
    repetitions.push(repetition);
    if (atOnce === 1) await repetition;
  }
  first.flaky = (await Promise.all(repetitions)).every(Boolean);
}

/**
 * Runs one program as a stage, records its result, and resolves with it. Its output is shown as it comes; if other
 * programs run at the same time, at its end.
 */
function stage(name, command, args, isBesideOthers = false) {
  if (!isBesideOthers) say(name);
  const startedAt = performance.now();
  return new Promise((done) => {
    const output = isBesideOthers ? 'pipe' : 'inherit';
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', output, output] });
    const forward = (signal) => child.kill(signal);
    process.once('SIGTERM', forward).once('SIGINT', forward);
    const pieces = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece) => pieces.push(piece));
    const ended = (ok) => {
      process.off('SIGTERM', forward).off('SIGINT', forward);
      if (isBesideOthers) say(`${name}\n${Buffer.concat(pieces)}`);
      const result = { name, ok, seconds: ((performance.now() - startedAt) / 1000).toFixed(1) };
      results.push(result);
      done(result);
    };
    child.once('error', (error) => say(error.message)); // 'close' follows
    child.once('close', (code) => ended(code === 0));
  });
}
