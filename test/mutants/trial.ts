/** Tries one mutant: the test files that reach it run, the cheapest first, until one fails. */
import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type Mutant, mutated } from './mutant.ts';
import type { Reached, Recording } from './recording.ts';
import type { RanFile, RunOrder } from './run-files.ts';
import type { TrialCheckout } from './trial-checkout.ts';

export interface Outcome {
  readonly mutant: string;
  /** The file and the test that found it; undefined when none did. */
  readonly foundBy?: { readonly file: string; readonly test: string };
  /** How many files reach it. */
  readonly reachedBy: number;
}

export interface TrialOptions {
  readonly checkout: TrialCheckout;
  readonly recording: Recording;
  readonly lanes: number;
  /** Files to run in place of those that reach the mutant. */
  readonly files?: readonly string[] | undefined;
}

const LIMIT_MS = 150_000;
/** How long it takes to write the bundles. */
const BUNDLING_MS = 5_000;

const running = new Set<ChildProcess>();

/** Ends all test files that run now. */
export function endTests(): void {
  for (const child of running) child.kill('SIGTERM');
}

/** Resolves with the files that have ended, in the order of their ends. */
export function runFiles(
  { path }: TrialCheckout,
  order: Omit<RunOrder, 'limitMs'>,
  onEnd: (ran: RanFile) => void = () => {},
): Promise<RanFile[]> {
  return new Promise((resolve, reject) => {
    const script = join(path, 'dist/test/mutants/run-files.js');
    const child = fork(script, [JSON.stringify({ ...order, limitMs: LIMIT_MS })], {
      cwd: path,
      stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      execArgv: ['--conditions=development'],
    });
    running.add(child);
    const ended: RanFile[] = [];
    createInterface({ input: child.stdout! }).on('line', (line) => {
      const ran = JSON.parse(line) as RanFile;
      ended.push(ran);
      onEnd(ran);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      running.delete(child);
      if (code === 0) resolve(ended);
      else reject(new Error(`The test files could not be run: exit code ${code}.`));
    });
  });
}

/**
 * Tries the mutant and puts the file back. Short files that need no bundle come before the bundles are written. A file has found the
 * mutant if it fails twice with it and then passes without it.
 */
export async function tryMutant(mutant: Mutant, options: TrialOptions): Promise<Outcome> {
  const { checkout, recording, files, lanes } = options;
  const reached = files?.map((file) => ({ file, inBundle: true })) ?? recording.reached[mutant.name] ?? [];
  const times = new Map(recording.files.map(({ file, ms }) => [file, ms]));
  const timeOf = (file: string) => times.get(file) ?? 0;
  const inOrder = reached.toSorted((a, b) => timeOf(a.file) - timeOf(b.file) || (a.file < b.file ? -1 : 1));
  const isEarly = (one: Reached) => !one.inBundle && timeOf(one.file) < BUNDLING_MS;
  const parts = [inOrder.filter(isEarly), inOrder.filter((one) => !isEarly(one))];
  const original = checkout.read(mutant.file);
  const edited = mutated(original, mutant);
  const use = async (text: string, inBundle: boolean) => {
    checkout.write(mutant.file, text);
    await checkout.compile(mutant.file);
    if (!inBundle) return;
    if (text === original) checkout.restoreBundle();
    else await checkout.bundle();
  };
  const failureOf = async (file: string) => {
    const [ran] = await runFiles(checkout, { files: [file], lanes: 1, untilFailure: false });
    return ran?.failed;
  };
  try {
    for (const part of parts) {
      const inBundle = part.some((one) => one.inBundle);
      for (let rest = part.map(({ file }) => file); rest.length > 0; ) {
        await use(edited, inBundle);
        const ended = await runFiles(checkout, { files: rest, lanes, untilFailure: true });
        const failed = new Set(ended.flatMap((ran) => (ran.failed === undefined ? [] : ran.file)));
        const at = rest.findIndex((file) => failed.has(file));
        if (at < 0) break;
        const file = rest[at]!;
        const test = await failureOf(file);
        if (test !== undefined) {
          await use(original, inBundle);
          if ((await failureOf(file)) === undefined)
            return { mutant: mutant.name, foundBy: { file, test }, reachedBy: reached.length };
        }
        rest = rest.slice(at + 1);
      }
    }
    return { mutant: mutant.name, reachedBy: reached.length };
  } finally {
    await use(original, true);
  }
}
