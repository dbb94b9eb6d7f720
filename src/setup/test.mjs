// `npm test`: set-up, lint, the Python tests, the Node.js tests. Every stage runs even when an earlier one has failed.
// With arguments it runs only those: test files or folders (`test/auth`, `test/config.test.ts`,
// `test/kernel-host/test_frames.py`); what begins with a hyphen is passed on to the Node.js test runner.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join, relative, resolve } from 'node:path';
import { reporting, SetupError, say } from './say.mjs';
import { ROOT, setUp } from './setup.mjs';
import { filesBelow } from './stamps.mjs';

const FILE_TIMEOUT_MS = 300_000;
const PYTHON_TESTS = 'test/kernel-host';

await reporting(setUp);
const { nodeTests, pythonTests, flags, everything } = await reporting(() => select(process.argv.slice(2)));
const results = [];
if (everything) await stage('lint', join(ROOT, 'node_modules', '.bin', 'biome'), ['check', '.']);
for (const pattern of everything && pythonTests.length > 0
  ? ['test_*.py']
  : pythonTests.map((file) => basename(file))) {
  const python = process.env.TROUPE_PYTHON || join(ROOT, '.venv', 'bin', 'python');
  await stage(`Python ${pattern}`, python, ['-m', 'unittest', 'discover', '-s', PYTHON_TESTS, '-p', pattern]);
}
if (nodeTests.length > 0) {
  const concurrency = `--test-concurrency=${availableParallelism()}`;
  const options = [
    '--conditions=development',
    '--enable-source-maps',
    '--test-reporter=spec',
    // Of one file: what hangs has to end as a failure that names it.
    `--test-timeout=${FILE_TIMEOUT_MS}`,
    concurrency,
  ];
  await stage('Node.js tests', process.execPath, [...options, ...flags, '--test', ...nodeTests]);
}
for (const { name, ok, seconds } of results) say(`${ok ? 'passed' : 'FAILED'}  ${name} (${seconds} s)`);
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;

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
