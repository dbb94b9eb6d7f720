/**
 * The test files, and which command runs each. A file says so on its first lines:
 *
 *     // tier: whole, because it kills servers          only `npm run whole` runs it, in a process of its own
 *     // tier: test, because it starts programs         only `npm test` runs it, not `npm run quick`
 *     // own process: it counts calls                   no lane runs it
 *     // own kernel host: it ends the host              each of its servers starts a kernel host
 *     // runs alone: it starts many processes           no other file runs at the same time; only with `tier: whole`
 *
 * Without a tier, a file that starts no server, kernel or program belongs to `npm run quick`, and any other to `npm test`.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const PYTHON_TESTS = 'test/confined/python';

/** The commands that run files. `npm test` runs the quick files, too; `npm run whole` runs the long ones only. */
export const TIERS = ['quick', 'test', 'whole'] as const;
export type Tier = (typeof TIERS)[number];

/** One test file. */
export interface TestFile {
  /** Relative to the checkout. */
  readonly path: string;
  readonly tier: Tier;
  readonly runsIn: 'lane' | 'process' | 'python';
  readonly ownHost: boolean;
  /** Whether no other file runs at the same time. */
  readonly alone: boolean;
}

/** Modules of the tests that start servers, kernels, browsers or programs: a file that imports one of these takes long. */
const STARTERS = [
  'test/support/server-fixture.ts',
  'test/support/child-server.ts',
  'test/support/store/child-script.ts',
  'test/support/browser.ts',
  'test/support/firefox.ts',
  'test/confined/kernel-fixture.ts',
  'test/datasource/engine-host.ts',
  'test/faces/cli/troupe-process.ts',
];
const HEAD_LINES = 6;
const TIER = /^(?:\/\/|#) tier: (\w+)(, because \S)?/m;
const OWN = /^\/\/ own (process|kernel host): \S/gm;
const ALONE = /^\/\/ runs alone: \S/m;
/** A line that looks like a mark, and has to be one. */
const LIKE_MARK = /^\/\/ (?:tier\b|own \w+(?: \w+)?:|runs alone\b).*/gm;
const IMPORT = /(?:from|import|import\() ?'(#test\/|\.{1,2}\/)([^']+\.ts)'/g;

/** Returns all test files of the checkout at `root`. Throws when a file has a mark that cannot be read. */
export function testFiles(root: string): TestFile[] {
  const graph = new ImportGraph(root);
  const typed = filesBelow(root, 'test', /\.test\.ts$/).map((path): TestFile => {
    const head = headOf(root, path);
    const own = [...head.matchAll(OWN)].map(([, what]) => what);
    const tier =
      tierOf(path, head) ?? (STARTERS.some((starter) => graph.reaches(path, starter)) ? 'test' : 'quick');
    for (const [line] of head.matchAll(LIKE_MARK))
      if (![TIER, OWN, ALONE].some((mark) => new RegExp(mark.source, 'm').test(line)))
        throw new Error(`${path} has a mark that cannot be read: ${line}`);
    const alone = ALONE.test(head);
    if (alone && tier !== 'whole')
      throw new Error(
        `${path} runs alone, which only a file of the tier whole can: the others run beside each other.`,
      );
    return {
      path,
      tier,
      runsIn: own.includes('process') || tier === 'whole' ? 'process' : 'lane',
      ownHost: own.includes('kernel host'),
      alone,
    };
  });
  const python = filesBelow(root, PYTHON_TESTS, /\/test_\w+\.py$/).map(
    (path): TestFile => ({
      path,
      tier: tierOf(path, headOf(root, path)) ?? 'test',
      runsIn: 'python',
      ownHost: false,
      alone: false,
    }),
  );
  return [...typed, ...python];
}

function tierOf(path: string, head: string): Tier | undefined {
  const [mark, named, reason] = TIER.exec(head) ?? [];
  if (mark === undefined) return undefined;
  const tier = TIERS.find((one) => one === named);
  if (tier === undefined)
    throw new Error(`${path} names the tier ${named}: it is one of ${TIERS.join(', ')}.`);
  if (reason === undefined) throw new Error(`${path} names a tier without a reason: ", because …".`);
  return tier;
}

function headOf(root: string, path: string): string {
  return readFileSync(join(root, path), 'utf8').split('\n', HEAD_LINES).join('\n');
}

/** Which test file imports which module, directly or through others. */
export class ImportGraph {
  readonly #root: string;
  readonly #imports = new Map<string, readonly string[]>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Returns whether `from` imports `wanted`, directly or through others below test/. */
  reaches(from: string, wanted: string, seen = new Set<string>()): boolean {
    if (from === wanted) return true;
    if (seen.has(from)) return false;
    seen.add(from);
    return this.#importsOf(from).some((next) => this.reaches(next, wanted, seen));
  }

  #importsOf(file: string): readonly string[] {
    let found = this.#imports.get(file);
    if (found === undefined) {
      const at = join(this.#root, file);
      const text = existsSync(at) ? readFileSync(at, 'utf8') : '';
      found = [...text.matchAll(IMPORT)].map(([, start, path]) =>
        join(start === '#test/' ? 'test' : join(dirname(file), start!), path!),
      );
      this.#imports.set(file, found);
    }
    return found;
  }
}

/** Returns the files below `folder` that match, relative to `root` and sorted. */
function filesBelow(root: string, folder: string, wanted: RegExp): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => `${folder}/${path}`)
    .filter((path) => wanted.test(path))
    .sort();
}
