/**
 * Runs test files of a trial checkout, in a process of its own: `node run-files.js`, with an order as JSON in its first argument and the
 * checkout as its working directory. It prints one line of JSON for each file that has ended.
 */
import { join } from 'node:path';
import { testFiles } from '#test/runner/files.ts';
import { type FileResult, killAll, runInLanes } from '#test/runner/lanes.ts';

export interface RunOrder {
  /** The files, in the order in which they begin. */
  readonly files: readonly string[];
  readonly lanes: number;
  /** A file that takes longer has failed. */
  readonly limitMs: number;
  /** Whether to stop at the first file in the order that fails. */
  readonly untilFailure: boolean;
}

export interface RanFile {
  readonly file: string;
  readonly ms: number;
  /** The first test that failed; undefined when all passed. */
  readonly failed?: string;
  readonly text?: string;
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => end(1));
process.once('disconnect', () => end(1)); // it does not outlive the process that has started it

const order = JSON.parse(process.argv[2] ?? '{}') as RunOrder;
const root = process.cwd();
const byPath = new Map(testFiles(root).map((file) => [file.path, file]));
const chosen = order.files.flatMap((path) => byPath.get(path) ?? []);
const ended = new Map<string, RanFile>();
await runInLanes(chosen, {
  root,
  lanes: Math.min(order.lanes, chosen.length),
  limitMs: order.limitMs,
  env: {},
  python: process.env.TROUPE_PYTHON || join(root, '.venv', 'bin', 'python'),
  onEnd: (result) => {
    const ran = ranFile(result);
    process.stdout.write(`${JSON.stringify(ran)}\n`);
    ended.set(ran.file, ran);
    if (order.untilFailure) stopAtFailure();
  },
});
end(0);

/** Ends the run once the first file in the order that has failed is certain, so that the result does not depend on luck. */
function stopAtFailure(): void {
  for (const { path } of chosen) {
    const ran = ended.get(path);
    if (ran === undefined) return;
    if (ran.failed !== undefined) end(0);
  }
}

function ranFile({ file, ms, tests }: FileResult): RanFile {
  const failed = tests.find(({ outcome }) => outcome === 'failed');
  return {
    file: file.path,
    ms: Math.round(ms),
    ...(failed && { failed: failed.name, text: (failed.text ?? '').slice(0, 2_000) }),
  };
}

function end(code: number): never {
  killAll();
  process.exit(code);
}
