/**
 * Runs test files in lanes. A few slots take the files one at a time, those that took longest in the last run first. A slot keeps one
 * lane process for its files. Files with a process of their own and Python tests take the place of a lane's file.
 */
import { type ChildProcess, fork, spawn } from 'node:child_process';
import { basename, dirname, join } from 'node:path';
import { deferred } from '../support/deferred.ts';
import type { TestFile } from './files.ts';
import type { Order, Report, TestReport } from './messages.ts';
import { processesBelow, residentBytes } from './process-tree.ts';

/** How a file ended. */
export interface FileResult {
  readonly file: TestFile;
  readonly ms: number;
  readonly tests: readonly TestReport[];
  /** The parts of the process that the file left changed. */
  readonly notes: readonly string[];
  /** The end of what the file printed. */
  readonly output: string;
}

export interface LaneOptions {
  /** The checkout. */
  readonly root: string;
  /** How many files run at once. */
  readonly lanes: number;
  /** If no test of a file begins or ends for so long, the file has failed, and its process is killed. A Python file as a whole has this limit. */
  readonly limitMs: number;
  readonly env: Readonly<Record<string, string>>;
  readonly python: string;
  /** Called with each file that has ended. */
  readonly onEnd: (result: FileResult) => void;
}

/** A lane that has grown to this size is replaced before its next file: starting a program from a large process takes long. */
const MAX_LANE_BYTES = 900 * 1024 * 1024;
const MAX_OUTPUT_CHARS = 20_000;
const GRACE_MS = 3_000;

/** The groups of processes that run now. They are not the terminal's group, so that a signal to the runner has to be passed on. */
const groups = new Set<number>();

/** Kills all processes of this run. */
export function killAll(): void {
  for (const group of groups) killGroup(group);
}

function killGroup(group: number): void {
  try {
    process.kill(-group, 'SIGKILL');
  } catch {
    // The group has no process any more.
  }
}

/** Runs `files` in their order. Resolves when all of them have ended. */
export async function runInLanes(files: readonly TestFile[], options: LaneOptions): Promise<void> {
  const queue = [...files];
  const slot = async (number: number) => {
    let lane: TestProcess | undefined;
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const run = new FileRun(file);
      if (file.runsIn === 'python') await runPython(run, options);
      else if (file.runsIn === 'process') await TestProcess.ofFile(run, options);
      else {
        if (lane === undefined || !lane.isUsable) {
          await lane?.end();
          lane = new TestProcess(join(options.root, 'dist/test/runner/lane.js'), options, number);
        }
        await lane.run(run);
      }
      options.onEnd(run.result());
    }
    await lane?.end();
  };
  await Promise.all(Array.from({ length: options.lanes }, (_, index) => slot(index + 1)));
}

/** One file while it runs. */
class FileRun {
  readonly file: TestFile;
  readonly #startedAt = performance.now();
  readonly #tests: TestReport[] = [];
  readonly #notes: string[] = [];
  readonly #begun = new Set<string>();
  #output = '';

  constructor(file: TestFile) {
    this.file = file;
  }

  take(report: Report): void {
    // A lane's file is a suite with its name.
    if (report.op === 'begun' && report.name !== this.file.path) this.#begun.add(report.name);
    if (report.op === 'test') {
      this.#begun.delete(report.name);
      this.#tests.push(report);
    } else if (report.op === 'note') this.#notes.push(report.text);
  }

  /** The tests that have begun and not ended. */
  get running(): readonly string[] {
    return [...this.#begun];
  }

  print(text: string): void {
    this.#output = (this.#output + text).slice(-MAX_OUTPUT_CHARS);
  }

  fail(name: string, text: string): void {
    this.#tests.push({ op: 'test', name, outcome: 'failed', ms: 0, text, ofFile: true });
  }

  get hasFailed(): boolean {
    return this.#tests.some(({ outcome }) => outcome === 'failed');
  }

  result(): FileResult {
    return {
      file: this.file,
      ms: performance.now() - this.#startedAt,
      tests: this.#tests,
      notes: this.#notes,
      output: this.#output,
    };
  }
}

/** A process of Node.js that runs test files: a lane, or the process of one file. */
class TestProcess {
  readonly #child: ChildProcess;
  readonly #options: LaneOptions;
  readonly #closed: Promise<string>;
  #hasClosed = false;
  #isSpent = false;
  #run: FileRun | undefined;
  #limit: NodeJS.Timeout | undefined;
  /** Resolves when the process asks for a file. */
  #idle = deferred<void>();

  constructor(script: string, options: LaneOptions, lane?: number) {
    this.#options = options;
    this.#child = fork(script, [], {
      cwd: options.root,
      execArgv: [
        '--conditions=development',
        '--enable-source-maps',
        `--test-reporter=${join(options.root, 'dist/test/runner/reporter.js')}`,
        '--test-reporter-destination=stdout',
      ],
      env: { ...process.env, ...options.env, ...(lane !== undefined && { TROUPE_TEST_LANE: String(lane) }) },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: true, // its group is killed with it, so that no program of a test outlives it
    });
    for (const stream of [this.#child.stdout!, this.#child.stderr!]) {
      stream.setEncoding('utf8').on('data', (text: string) => this.#run?.print(text));
    }
    this.#child.on('message', (message) => {
      const report = message as Report;
      // The lane wrote its output to the pipes before this message, so the turn that brings the message brings the output, too.
      if (report.op === 'next') setImmediate(() => setImmediate(this.#idle.resolve));
      else if (report.op === 'spent') this.#isSpent = true;
      else {
        this.#limit?.refresh();
        this.#run?.take(report);
      }
    });
    const group = this.#child.pid;
    if (group !== undefined) groups.add(group);
    this.#closed = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#hasClosed = true;
        if (group !== undefined) groups.delete(group);
        resolve(signal ?? `exit code ${code}`);
      });
      this.#child.once('error', (error) => resolve(error.message));
    });
  }

  /** Runs one file in a process of its own. */
  static async ofFile(run: FileRun, options: LaneOptions): Promise<void> {
    const own = new TestProcess(join(options.root, 'dist', run.file.path.replace(/\.ts$/, '.js')), options);
    own.#run = run;
    const end = await own.#within(own.#closed);
    if (end !== 'exit code 0' && !run.hasFailed) run.fail('the process of the file ends with code 0', end);
  }

  /** Whether it can run another file. */
  get isUsable(): boolean {
    return !this.#hasClosed && !this.#isSpent && residentBytes(this.#child.pid!) < MAX_LANE_BYTES;
  }

  /** Runs one file in this lane. Resolves when it has ended, or the lane has. */
  async run(run: FileRun): Promise<void> {
    await Promise.race([this.#idle.promise, this.#closed]);
    this.#idle = deferred();
    this.#run = run;
    this.#send({ op: 'file', file: run.file.path, ownHost: run.file.ownHost });
    const end = await this.#within(Promise.race([this.#idle.promise.then(() => undefined), this.#closed]));
    if (end !== undefined) run.fail('the lane of the file continues', `It ended: ${end}.`);
    this.#run = undefined;
  }

  /** Ends the lane. */
  async end(): Promise<void> {
    this.#send({ op: 'end' });
    const limit = setTimeout(() => this.#kill(), this.#options.limitMs);
    await this.#closed;
    clearTimeout(limit);
    this.#kill(); // programs that a test has left behind
  }

  #send(order: Order): void {
    if (this.#child.connected) this.#child.send(order, () => {}); // a lane that ends meanwhile is noticed by 'close'
  }

  /**
   * Resolves as `end` does. If no test begins or ends within the limit, the process prints its open resources and is killed. A file as
   * a whole has no limit, because a slow machine would reach it.
   */
  async #within<T>(end: Promise<T>): Promise<T> {
    this.#limit = setTimeout(() => {
      this.#limit = undefined; // a report that still comes must not start it again
      const { pid } = this.#child;
      this.#run?.fail(
        `a test begins or ends every ${this.#options.limitMs / 1000} s`,
        [
          ...(this.#run?.running ?? []).map((name) => `It still runs: ${name}`),
          'Processes below it:',
          ...processesBelow(pid!),
        ].join('\n'),
      );
      this.#child.kill('SIGUSR2');
      setTimeout(() => this.#kill(), GRACE_MS);
    }, this.#options.limitMs);
    try {
      return await end;
    } finally {
      clearTimeout(this.#limit);
      this.#limit = undefined;
    }
  }

  #kill(): void {
    killGroup(this.#child.pid!);
  }
}

/** Runs a file of Python tests. Its tests are counted; the names of those that failed are in the text. */
async function runPython(run: FileRun, { root, python, env, limitMs }: LaneOptions): Promise<void> {
  const { path } = run.file;
  const child = spawn(python, ['-m', 'unittest', 'discover', '-s', dirname(path), '-p', basename(path)], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  if (child.pid !== undefined) groups.add(child.pid);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      run.print(piece);
    });
  }
  const limit = setTimeout(() => {
    run.fail(`the file ends within ${limitMs / 1000} s`, processesBelow(child.pid!).join('\n'));
    killGroup(child.pid!);
  }, limitMs);
  const end = await new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
  clearTimeout(limit);
  groups.delete(child.pid!);
  const ran = Number(/^Ran (\d+) tests?/m.exec(text)?.[1] ?? 0);
  const skipped = Number(/\bskipped=(\d+)/.exec(text)?.[1] ?? 0);
  const reason = /skipped ['"](.+?)['"]/.exec(text)?.[1] ?? 'the reason is in the output of the file';
  const failures = [...text.matchAll(/^(?:FAIL|ERROR): (.+)$/gm)].map(([, name]) => name!);
  const passed = Math.max(0, ran - skipped - failures.length);
  for (let test = 0; test < passed; test++) run.take({ op: 'test', name: path, outcome: 'passed', ms: 0 });
  for (let test = 0; test < skipped; test++)
    run.take({ op: 'test', name: path, outcome: 'skipped', ms: 0, text: reason });
  for (const name of failures) run.fail(name, textOfFailure(text, name));
  if (end !== 'exit code 0' && failures.length === 0)
    run.fail('the Python tests pass', `${end}\n${text.slice(-3_000)}`);
}

/** Returns the part of unittest's output that is about one failed test. */
function textOfFailure(text: string, name: string): string {
  const part = text.split(/^={60,}$/m).find((one) => one.includes(`: ${name}`));
  return (part ?? text).trim().slice(0, 6_000);
}
