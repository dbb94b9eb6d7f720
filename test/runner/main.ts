/**
 * Runs test files for `npm run quick`, `npm test` and `npm run whole`, after the set-up. `src/setup/test.mjs` calls it; nothing here
 * imports sources of the server.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { type TestFile, TIERS, type Tier, testFiles } from './files.ts';
import { type FileResult, killAll, runInLanes } from './lanes.ts';
import { processorSeconds } from './process-tree.ts';
import { filesForWorkers, type Stage, stagesOfFiles, stagesOfTier } from './stages.ts';
import { Summary } from './summary.ts';

/** The choice that a command line makes. */
export interface Selection {
  readonly tier: Tier;
  readonly stages: readonly Stage[];
  /** Options of the test runner of Node.js, which then runs the files, each in a process. */
  readonly flags: readonly string[];
  readonly isEverything: boolean;
}

/**
 * A test may take so long. Tests wait for facts up to two minutes, so that their error comes before this limit. One of the long tests boots
 * a Debian and installs the server in it.
 */
const LIMIT_MS = 300_000;
const LIMIT_OF_LONG_TESTS_MS = 1_200_000;
/** If more files than this have failed, they do not run again, because chance is an unlikely cause. */
const MAX_REPEATED_FILES = 8;
/** A file of the long tests fails a run if it fails so many times. */
const TRIES_OF_LONG_TESTS = 3;

/**
 * Returns the selection of the arguments: paths of files and folders, `--tier=…`, and further options for the test runner of Node.js.
 * Throws with a sentence when a path or tier does not exist.
 */
export function select(root: string, args: readonly string[]): Selection {
  const named = args.filter((arg) => !arg.startsWith('-')).map((arg) => relative(root, resolve(arg)));
  const flags = args.filter((arg) => arg.startsWith('-') && !arg.startsWith('--tier='));
  const asked = args.find((arg) => arg.startsWith('--tier='))?.slice('--tier='.length) ?? 'test';
  const tier = TIERS.find((one) => one === asked);
  if (tier === undefined) throw new Error(`There is no tier ${asked}: it is one of ${TIERS.join(', ')}.`);
  for (const path of named) if (!existsSync(join(root, path))) throw new Error(`${path} does not exist.`);
  const all = testFiles(root);
  const isForWorkers = (process.env.TROUPE_TEST_WORKERS ?? '1') !== '1';
  const chosen = all.filter(({ path }) => named.some((one) => path === one || path.startsWith(`${one}/`)));
  const stages =
    named.length > 0
      ? stagesOfFiles(isForWorkers ? chosen.filter(({ runsIn }) => runsIn !== 'python') : chosen)
      : isForWorkers
        ? stagesOfFiles(filesForWorkers(root, all))
        : flags.length > 0
          ? stagesOfFiles(stagesOfTier(tier, all).flatMap(({ files }) => files))
          : stagesOfTier(tier, all);
  const selected = stages.flatMap(({ files }) => files);
  if (selected.length === 0) {
    const isPython = chosen.some(({ runsIn }) => runsIn === 'python');
    throw new Error(
      isPython
        ? 'Python tests start no server with workers: name them without TROUPE_TEST_WORKERS.'
        : 'No test file matches these arguments. Paths are relative to the root of the checkout.',
    );
  }
  if (flags.length > 0 && selected.every(({ runsIn }) => runsIn === 'python'))
    throw new Error(
      'Options go to the test runner of Node.js, which runs no Python tests: name them without options.',
    );
  return { tier, stages, flags, isEverything: named.length === 0 };
}

/** Runs and prints the selected files. Resolves with whether nothing refuses a change. */
export async function run(root: string, selection: Selection, say: (line: string) => void): Promise<boolean> {
  const { tier, stages, flags, isEverything } = selection;
  if (flags.length > 0) return runByNode(root, stages, flags);
  const python = process.env.TROUPE_PYTHON || join(root, '.venv', 'bin', 'python');
  const times = new Times(join(root, '.setup', 'test-times.json'));
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => {
      killAll();
      process.exit(code);
    });
  }
  const summary = new Summary({ root, say, isEverything });
  const [startedAt, workedBefore] = [performance.now(), processorSeconds()];
  const linting = isEverything && tier !== 'whole' ? lint(root) : undefined; // beside the first tests
  for (const stage of stages) {
    const options = {
      root,
      python,
      env: stage.env,
      limitMs: stage.files.some((file) => file.tier === 'whole') ? LIMIT_OF_LONG_TESTS_MS : LIMIT_MS,
      lanes: Math.min(stage.lanes, stage.files.length),
    };
    const runFiles = async (
      files: readonly TestFile[],
      onEnd: (result: FileResult) => void,
      lanes = options.lanes,
    ) => runInLanes(files, { ...options, lanes, onEnd });
    summary.begin(stage.name, stage.files.length);
    const failed: FileResult[] = [];
    await runFiles(times.longestFirst(stage.files), (result) => {
      times.note(result);
      summary.add(result);
      if (hasFailed(result)) failed.push(result);
    });
    summary.end();
    const tries =
      failed.length > MAX_REPEATED_FILES
        ? 1
        : tier === 'whole' && isEverything
          ? TRIES_OF_LONG_TESTS
          : isEverything
            ? 2
            : 1;
    const failures = new Map(failed.map(({ file }) => [file.path, 1]));
    for (let time = 2; time <= tries; time++) {
      const again = failed.map(({ file }) => file).filter(({ path }) => failures.get(path) === time - 1);
      if (again.length === 0) break;
      say(
        `${again.length === 1 ? 'the failed file runs' : `${again.length} failed files run`} again, to see whether it always fails`,
      );
      await runFiles(again, (result) => {
        if (hasFailed(result)) failures.set(result.file.path, time);
      });
    }
    for (const result of failed) {
      const always = failures.get(result.file.path)! >= tries;
      summary.failed(result, {
        env: stage.env,
        always,
        tries,
        refuses: always || tier !== 'whole' || !isEverything,
      });
    }
  }
  times.write();
  summary.lint(await linting);
  const ok = summary.print({
    seconds: (performance.now() - startedAt) / 1000,
    processorSeconds: processorSeconds() - workedBefore,
  });
  return ok;
}

function hasFailed({ tests }: FileResult): boolean {
  return tests.some(({ outcome }) => outcome === 'failed');
}

/** Resolves with the complaints of the linter; undefined when there are none. */
function lint(root: string): Promise<string | undefined> {
  return new Promise((done) => {
    const child = spawn(join(root, 'node_modules', '.bin', 'biome'), ['check', '.'], { cwd: root });
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => (text += piece));
    child.once('error', (error) => done(error.message));
    child.once('close', (code) => done(code === 0 ? undefined : text));
  });
}

/** Runs the files with the test runner of Node.js, except for Python tests; their output is shown as it comes. */
async function runByNode(root: string, stages: readonly Stage[], flags: readonly string[]): Promise<boolean> {
  const compiled = stages
    .flatMap(({ files }) => files)
    .filter(({ runsIn }) => runsIn !== 'python')
    .map(({ path }) => `dist/${path.replace(/\.ts$/, '.js')}`);
  const options = [
    '--conditions=development',
    '--enable-source-maps',
    '--test-reporter=spec',
    '--test-concurrency=2',
  ];
  const child = spawn(process.execPath, [...options, ...flags, '--test', ...compiled], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const forward = (signal: NodeJS.Signals) => child.kill(signal);
  process.once('SIGTERM', forward).once('SIGINT', forward);
  return new Promise((done) => child.once('close', (code) => done(code === 0)));
}

/** How long files took in the last runs. */
class Times {
  readonly #path: string;
  readonly #seconds: Record<string, number>;

  constructor(path: string) {
    this.#path = path;
    try {
      this.#seconds = JSON.parse(readFileSync(path, 'utf8')) as Record<string, number>;
    } catch {
      this.#seconds = {}; // the first run
    }
  }

  note({ file, ms }: FileResult): void {
    this.#seconds[file.path] = Math.round(ms / 100) / 10;
  }

  /** Returns the files in the order in which they run: a long file that began last would keep one lane working alone. */
  longestFirst(files: readonly TestFile[]): TestFile[] {
    const expected = (file: TestFile) => this.#seconds[file.path] ?? guessOf(file);
    return [...files].sort((a, b) => expected(b) - expected(a));
  }

  write(): void {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, JSON.stringify(this.#seconds, null, 1));
  }
}

/** Returns the seconds that a file may take that never ran here. */
function guessOf({ path, tier, runsIn }: TestFile): number {
  if (tier === 'quick') return 1;
  if (runsIn !== 'lane') return 10;
  return /session-lifetimes|journeys\/pages|cluster\/|faults\/|console\//.test(path) ? 15 : 5;
}
