/** Prints a run for people: its progress, and at its end one screen with the counts, the skipped tests and every failure. */
import type { FileResult } from './lanes.ts';

const PROGRESS_MS = 30_000;
const SLOWEST_FILES = 5;
const MAX_OUTPUT_LINES = 30;

interface Failure {
  readonly result: FileResult;
  readonly always: boolean;
  readonly tries: number;
  readonly refuses: boolean;
  /** The environment of the stage in which it failed. */
  readonly env: Readonly<Record<string, string>>;
}

export interface SummaryOptions {
  readonly root: string;
  readonly say: (line: string) => void;
  /** Whether a whole tier runs. Otherwise each test has a line. */
  readonly isEverything: boolean;
}

export class Summary {
  readonly #options: SummaryOptions;
  readonly #results: FileResult[] = [];
  readonly #failures: Failure[] = [];
  readonly #stages: string[] = [];
  #lint: string | undefined;
  #stage = { name: '', files: 0, startedAt: 0, from: 0 };
  #ticker: NodeJS.Timeout | undefined;

  constructor(options: SummaryOptions) {
    this.#options = options;
  }

  /** Notes the complaints of the linter. */
  lint(complaints: string | undefined): void {
    this.#lint = complaints;
  }

  /** Begins a stage. */
  begin(name: string, files: number): void {
    this.#stage = { name, files, startedAt: performance.now(), from: this.#results.length };
    this.#options.say(`${name}: ${files} files`);
    this.#ticker = setInterval(() => {
      const { ended, passed, failed } = this.#counts();
      this.#options.say(`${name}: ${ended} of ${files} files, ${passed} tests passed, ${failed} failed`);
    }, PROGRESS_MS);
  }

  /** Adds a file that has ended. */
  add(result: FileResult): void {
    this.#results.push(result);
    const { file, tests, ms } = result;
    const failed = tests.filter(({ outcome }) => outcome === 'failed');
    if (!this.#options.isEverything) {
      if (file.runsIn !== 'python') {
        for (const { name, outcome, ms: took } of tests)
          this.#options.say(`${outcome.padEnd(7)} ${name} (${took} ms)`);
      }
      this.#options.say(`${file.path}: ${tests.length} tests, ${(ms / 1000).toFixed(1)} s`);
    } else for (const { name } of failed) this.#options.say(`FAILED  ${file.path}: ${name}`);
  }

  /** Ends the stage. */
  end(): void {
    clearInterval(this.#ticker);
    const { name, startedAt } = this.#stage;
    const { ended, passed, failed, skipped } = this.#counts();
    const counts = `${passed} passed${failed > 0 ? `, ${failed} FAILED` : ''}${skipped > 0 ? `, ${skipped} skipped` : ''}`;
    this.#stages.push(`${name}: ${ended} files, ${counts}, ${seconds(performance.now() - startedAt)}`);
  }

  /** Notes how a file failed. */
  failed(result: FileResult, how: Omit<Failure, 'result'>): void {
    this.#failures.push({ result, ...how });
  }

  /** Prints the end of the run. Returns whether nothing refuses a change. */
  print(cost: { readonly seconds: number; readonly processorSeconds: number }): boolean {
    const { say, isEverything } = this.#options;
    const refusing = this.#failures.filter(({ refuses }) => refuses);
    for (const failure of this.#failures) this.#printFailure(failure);
    if (this.#lint !== undefined)
      say(`FAILED  lint: \`npm run format\` mends what can be mended\n${this.#lint.trimEnd()}`);
    for (const { file, notes } of this.#results)
      for (const note of new Set(notes)) say(`${file.path} ${note}`);
    for (const [reason, count] of this.#skipped()) say(`skipped ${count}: ${reason}`);
    if (isEverything) {
      const slowest = [...this.#results].sort((a, b) => b.ms - a.ms).slice(0, SLOWEST_FILES);
      say(`the slowest files: ${slowest.map(({ file, ms }) => `${file.path} ${seconds(ms)}`).join(', ')}`);
    }
    for (const line of this.#stages) say(line);
    const unsteady = this.#failures.length - refusing.length;
    if (unsteady > 0)
      say(
        `${unsteady} ${unsteady === 1 ? 'file is' : 'files are'} unsteady: passed when repeated, and has to be mended`,
      );
    const ok = refusing.length === 0 && this.#lint === undefined;
    say(
      `${ok ? 'passed' : 'FAILED'} in ${Math.round(cost.seconds)} s; the processors worked ${Math.round(cost.processorSeconds)} s meanwhile`,
    );
    return ok;
  }

  #printFailure({ result, always, tries, refuses, env }: Failure): void {
    const { say } = this.#options;
    const { file, tests, output } = result;
    const often =
      tries === 1 ? '' : always ? ` (${tries} times of ${tries})` : ' (it passed when it was repeated)';
    say('');
    say(`${refuses ? 'FAILED' : 'unsteady'}  ${file.path}${often}`);
    const failed = tests.filter(({ outcome }) => outcome === 'failed');
    // A name selects no test within a test, and a fact about a file is not a test.
    const isOfFile = file.runsIn === 'python' || failed.some(({ ofFile }) => ofFile === true);
    const command = [...Object.entries(env).map((pair) => pair.join('=')), 'npm test --'].join(' ');
    for (const { name, text } of failed) {
      say(`  ${name}`);
      say(`      ${(text ?? '').split('\n').join('\n      ')}`);
      if (!isOfFile) say(`    to repeat it: ${command} --test-name-pattern=${quoted(name)} ${file.path}`);
    }
    if (isOfFile) say(`    to repeat it: ${command} ${file.path}`);
    const printed = output.trimEnd().split('\n').slice(-MAX_OUTPUT_LINES);
    if (file.runsIn !== 'python' && output.trim() !== '')
      say(`  it printed:\n      ${printed.join('\n      ')}`);
  }

  #counts() {
    const results = this.#results.slice(this.#stage.from);
    const count = (wanted: string) =>
      results.reduce((sum, { tests }) => sum + tests.filter(({ outcome }) => outcome === wanted).length, 0);
    return {
      ended: results.length,
      passed: count('passed'),
      failed: count('failed'),
      skipped: count('skipped'),
    };
  }

  /** Returns how many tests were skipped for each reason. */
  #skipped(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { tests } of this.#results)
      for (const { outcome, text } of tests)
        if (outcome === 'skipped') counts.set(text ?? '', (counts.get(text ?? '') ?? 0) + 1);
    return counts;
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** Returns the name as one word of a shell, in which nothing has a meaning for a regular expression. */
function quoted(name: string): string {
  return `'${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll("'", `'\\''`)}'`;
}
