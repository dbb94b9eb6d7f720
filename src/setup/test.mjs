// `npm test`: set-up, lint, the Python tests, the Node.js tests. Every stage runs even when an earlier one has failed.
// With arguments it runs only those: test files or folders (`test/auth`, `test/config.test.ts`,
// `test/kernel-host/test_frames.py`); what begins with a hyphen is passed on to the Node.js test runner.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { reporting, SetupError, say } from './say.mjs';
import { ROOT, setUp } from './setup.mjs';
import { filesBelow } from './stamps.mjs';

const FAILED_FILES = new URL('failed-files.mjs', import.meta.url).href;
const FILE_TIMEOUT_MS = 300_000;
const PYTHON_TESTS = 'test/kernel-host';

await reporting(setUp);
const { nodeTests, pythonTests, flags, everything } = await reporting(() => select(process.argv.slice(2)));
const results = [];
if (everything) await stage('lint', join(ROOT, 'node_modules', '.bin', 'biome'), ['check', '.']);
for (const file of pythonTests) {
  const python = process.env.TROUPE_PYTHON || join(ROOT, '.venv', 'bin', 'python');
  const args = ['-m', 'unittest', 'discover', '-s', PYTHON_TESTS, '-p', basename(file)];
  await stageOrFlaky(basename(file), () => [python, args]);
}
if (nodeTests.length > 0) {
  const failures = join(tmpdir(), `troupe-failed-${process.pid}`);
  const optionsFor = (concurrency) => [
    '--conditions=development',
    '--enable-source-maps',
    ...['--test-reporter=spec', '--test-reporter-destination=stdout'],
    ...[`--test-reporter=${FAILED_FILES}`, `--test-reporter-destination=${failures}`],
    // Of one file: what hangs has to end as a failure that names it.
    `--test-timeout=${FILE_TIMEOUT_MS}`,
    `--test-concurrency=${concurrency}`,
    ...flags,
    '--test',
  ];
  await stageOrFlaky('Node.js tests', (isAgain) => {
    // The runner names sources, by their source maps.
    const named = isAgain && existsSync(failures) ? readFileSync(failures, 'utf8') : '';
    const failed = nodeTests.filter((file) => named.includes(file.slice('dist/'.length, -'.js'.length)));
    const files = failed.length > 0 ? failed : nodeTests;
    return [process.execPath, [...optionsFor(isAgain ? 1 : availableParallelism()), ...files]];
  });
  rmSync(failures, { force: true });
}
for (const { name, ok, flaky, seconds } of results) {
  say(`${ok ? 'passed' : flaky ? 'FLAKY ' : 'FAILED'}  ${name} (${seconds} s)`);
}
if (results.some(({ flaky }) => flaky))
  say('a flaky test is a fault of the test or of the code: CI fails on it');
process.exitCode = results.every(({ ok, flaky }) => ok || flaky) ? 0 : 1;

/** What to run for the arguments; everything when there are none. */
function select(args) {
  const flags = args.filter((arg) => arg.startsWith('-'));
  const named = args.filter((arg) => !arg.startsWith('-')).map((arg) => relative(ROOT, resolve(arg)));
  const sources = filesBelow(ROOT, 'test', '.test.ts');
  const python = filesBelow(ROOT, PYTHON_TESTS, '.py').filter((file) => /\/test_\w+\.py$/.test(file));
  for (const path of named) if (!existsSync(join(ROOT, path))) throw new SetupError(`There is no ${path}.`);
  const chosen = (file) =>
    named.length === 0 || named.some((path) => file === path || file.startsWith(`${path}/`));
  const nodeTests = sources.filter(chosen).map((file) => `dist/${file.replace(/\.ts$/, '.js')}`);
  const pythonTests = python.filter(chosen);
  if (nodeTests.length + pythonTests.length === 0) throw new SetupError('No test fits these arguments.');
  return { nodeTests, pythonTests, flags, everything: named.length === 0 };
}

/**
 * Runs a stage. In CI what fails has failed. On a person's machine, where other programs take processor time away, what
 * failed is run once more, alone; when it passes then, it is reported as flaky, with both results.
 */
async function stageOrFlaky(name, commandFor) {
  const [command, args] = commandFor(false);
  await stage(name, command, args);
  const first = results.at(-1);
  if (first.ok || process.env.CI === 'true') return;
  say(`${name}: something failed; it is run once more, alone, to tell whether it always fails`);
  const [again, againArgs] = commandFor(true);
  await stage(`${name}, second try`, again, againArgs);
  if (results.at(-1).ok) first.flaky = true;
}

/** Runs one program with its output shown, and notes how it ended. */
function stage(name, command, args) {
  say(name);
  const startedAt = performance.now();
  return new Promise((done) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'] });
    const forward = (signal) => child.kill(signal);
    process.once('SIGTERM', forward).once('SIGINT', forward);
    const ended = (ok) => {
      process.off('SIGTERM', forward).off('SIGINT', forward);
      results.push({ name, ok, seconds: ((performance.now() - startedAt) / 1000).toFixed(1) });
      done();
    };
    child.once('error', (error) => {
      say(error.message);
      ended(false);
    });
    child.once('close', (code) => ended(code === 0));
  });
}
