/**
 * Which test files reach which mutant. The places of all mutants get a mark, and `npm test` runs once with the marks. A mark appends
 * the number of its mutant and the present test file to a log; it works in lanes, and in servers and workers that a test has started.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MUTANTS } from './list.ts';
import { marked } from './mutant.ts';
import type { RanFile } from './run-files.ts';
import type { TrialCheckout } from './trial-checkout.ts';

export interface Reached {
  /** The paths of test files. */
  readonly file: string;
  /** Whether a server in a process of its own reached it, which runs from a bundle. */
  readonly inBundle: boolean;
}

export interface Recording {
  /** The files of the run, with their times, and whether they failed without any mutant. */
  readonly files: readonly RanFile[];
  /** The files that reach a mutant, by its name. */
  readonly reached: Readonly<Record<string, readonly Reached[]>>;
}

const LANE = 'test/runner/lane.ts';
const LANE_TAKES_FILE = '  lane.file = file;\n';

/** Marks all mutants in the checkout. The log is in `folder`, which is made. */
export function markAll(checkout: TrialCheckout, folder: string): void {
  mkdirSync(folder, { recursive: true });
  const helper = helperOf(folder);
  const texts = new Map<string, string>();
  for (const [index, mutant] of MUTANTS.entries()) {
    const text = texts.get(mutant.file) ?? checkout.read(mutant.file) + helper;
    texts.set(mutant.file, marked(text, mutant, `reachedMutant(${index})`));
  }
  for (const [file, text] of texts) checkout.write(file, text);
  const lane = checkout.read(LANE);
  if (!lane.includes(LANE_TAKES_FILE)) throw new Error(`${LANE} no longer says which file it runs.`);
  const tell = `  Object.assign(globalThis, { mutantTestFile: file });\n  (await import('node:fs')).writeFileSync(\`${folder}/\${process.pid}\`, file);\n`;
  checkout.write(LANE, lane.replace(LANE_TAKES_FILE, `${LANE_TAKES_FILE}${tell}`));
}

/**
 * Returns the function that a marked file gets. It finds the test file in the lane of its process, or in the nearest ancestor that is a
 * lane or the process of one test file. Children of tests have an environment of their own, so it cannot be a variable.
 */
function helperOf(folder: string): string {
  return `
import { appendFileSync as appendMutant, readFileSync as readMutant } from 'node:fs';
function reachedMutant(mutant: number): true {
  const all = globalThis as { mutantTestFile?: string; mutantsReached?: Set<string> };
  const text = (path: string): string => {
    try {
      return readMutant(path, 'utf8');
    } catch {
      return '';
    }
  };
  if (all.mutantTestFile === undefined) {
    let found = '';
    for (let pid = process.pid; found === '' && pid > 1; ) {
      const [, own] = /dist\\/(test\\/[^\\0]+\\.test)\\.js/.exec(text(\`/proc/\${pid}/cmdline\`)) ?? [];
      found = own === undefined ? text(\`${folder}/\${pid}\`) : \`\${own}.ts\`;
      pid = Number(/^PPid:\\s+(\\d+)/m.exec(text(\`/proc/\${pid}/status\`))?.[1] ?? 0);
    }
    all.mutantTestFile = found;
  }
  const line = \`\${mutant} \${import.meta.url.includes('/dist/server/')} \${all.mutantTestFile}\\n\`;
  all.mutantsReached ??= new Set();
  if (all.mutantsReached.has(line)) return true;
  all.mutantsReached.add(line);
  try {
    appendMutant('${folder}/log', line);
  } catch {
    // A confined process cannot write it.
  }
  return true;
}
`;
}

/** Returns the results in the log in `folder`, after a run of `files`. */
export function recordingOf(folder: string, files: readonly RanFile[]): Recording {
  const log = existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'utf8') : '';
  const found = MUTANTS.map(() => new Map<string, boolean>());
  for (const line of log.split('\n')) {
    const [, mutant, isBundle, file] = /^(\d+) (true|false) (\S+)$/.exec(line) ?? [];
    if (file === undefined) continue;
    const of = found[Number(mutant)];
    of?.set(file, of.get(file) === true || isBundle === 'true');
  }
  const reached = MUTANTS.map(({ name }, index): [string, Reached[]] => [
    name,
    [...found[index]!]
      .map(([file, inBundle]) => ({ file, inBundle }))
      .sort((a, b) => (a.file < b.file ? -1 : 1)),
  ]);
  return { files, reached: Object.fromEntries(reached) };
}

/** Reads a stored recording; undefined when there is none. */
export function storedRecording(path: string): Recording | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Recording) : undefined;
}

export function storeRecording(path: string, recording: Recording): void {
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, JSON.stringify(recording, null, 1));
}
