/** `npm run mutants`: shows that `npm test` fails with each of forty edits that break a rule. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { testFiles } from '#test/runner/files.ts';
import { scriptOptions } from '#test/support/script-options.ts';
import { MUTANTS } from './list.ts';
import { mutated, outdated } from './mutant.ts';
import { markAll, type Recording, recordingOf, storedRecording, storeRecording } from './recording.ts';
import { endTests, type Outcome, runFiles, tryMutant } from './trial.ts';
import { TrialCheckout } from './trial-checkout.ts';

const USAGE = `Tries each of forty mutants: edits that break a rule. \`npm test\` has to fail with each of them.

Usage: npm run mutants -- [options]

The first run marks the places of all mutants and runs \`npm test\` once, to record which test files reach which mutant. The record is
kept in .setup/mutants.json. Then, for each mutant, the files that reach it run, the cheapest first, until one fails. All of this happens
in a copy of the checkout, in the folder for temporary files.

  --record           records again, which is needed after larger changes of sources or tests
  --record-only      records, and tries no mutant
  --only TEXTS       tries the mutants whose name contains one of these texts, with a comma between them
  --with PATHS       runs these files and folders, with a comma between them, whatever their tier, in place of those that reach a mutant
  --lanes N          how many files run at once; 3
  -h, --help         shows this text`;

const ROOT = process.cwd();
const RECORD = join(ROOT, '.setup/mutants.json');
const LANES_OF_RECORDING = 4;

const values = scriptOptions(USAGE, {
  record: { type: 'boolean', default: false },
  'record-only': { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  with: { type: 'string' },
  lanes: { type: 'string', default: '3' },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const problems = outdated(ROOT, MUTANTS);
if (problems.length > 0) {
  for (const problem of problems) say(problem);
  process.exit(1);
}
const open = new Set<TrialCheckout>();
process.on('exit', () => {
  for (const checkout of open) checkout[Symbol.dispose]();
});
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)
  process.on(signal, () => {
    endTests();
    process.exit(code);
  });

const known = values.record || values['record-only'] ? undefined : storedRecording(RECORD);
const recording = known ?? (await record());
if (!values['record-only']) process.exitCode = (await tryAll(recording)) ? 0 : 1;

/** Runs `npm test` once with marks at the places of the mutants. */
async function record(): Promise<Recording> {
  const checkout = copy();
  try {
    const folder = join(checkout.path, '.mutants');
    markAll(checkout, folder);
    say('building with marks …');
    const { perform } = (await import(pathToFileURL(join(checkout.path, 'src/setup/build.mjs')).href)) as {
      perform(root: string): Promise<void>;
    };
    await perform(checkout.path);
    const times = new Map(storedRecording(RECORD)?.files.map(({ file, ms }) => [file, ms]));
    const expected = (file: string) => times.get(file) ?? 10_000;
    const files = testFiles(checkout.path)
      .filter(({ tier, runsIn }) => tier !== 'whole' && runsIn !== 'python')
      .map(({ path }) => path)
      .sort((a, b) => expected(b) - expected(a));
    say(`recording: ${files.length} files`);
    let count = 0;
    const ended = await runFiles(
      checkout,
      { files, lanes: LANES_OF_RECORDING, untilFailure: false },
      ({ file, failed }) => {
        count++;
        if (failed !== undefined) say(`fails without a mutant: ${file}: ${failed}`);
        if (count % 50 === 0) say(`recording: ${count} of ${files.length} files`);
      },
    );
    const recording = recordingOf(folder, ended);
    storeRecording(RECORD, recording);
    for (const { name } of MUTANTS) say(`${name}: ${recording.reached[name]?.length ?? 0} files reach it`);
    return recording;
  } finally {
    close(checkout);
  }
}

/** Tries the mutants. Resolves with whether all were found. */
async function tryAll(recording: Recording): Promise<boolean> {
  const checkout = copy();
  try {
    const chosen = MUTANTS.filter(({ name }) => values.only.split(',').some((text) => name.includes(text)));
    await requireTypes(checkout);
    const files = values.with === undefined ? undefined : filesBelow(values.with.split(','));
    const outcomes: Outcome[] = [];
    for (const mutant of chosen) {
      const outcome = await tryMutant(mutant, { checkout, recording, lanes: Number(values.lanes), files });
      outcomes.push(outcome);
      say(rowOf(outcome));
    }
    const missed = outcomes.filter(({ foundBy }) => foundBy === undefined);
    say(`${outcomes.length - missed.length} of ${outcomes.length} mutants were found.`);
    return missed.length === 0;
  } finally {
    close(checkout);
  }
}

/** Throws when the compiler finds a mutant, because that would prove nothing about the tests. */
async function requireTypes(checkout: TrialCheckout): Promise<void> {
  const originals = new Map(MUTANTS.map(({ file }) => [file, checkout.read(file)]));
  for (const mutant of MUTANTS) checkout.write(mutant.file, mutated(checkout.read(mutant.file), mutant));
  const complaints = await checkout.checkTypes();
  for (const [file, text] of originals) checkout.write(file, text);
  if (complaints !== '') throw new Error(`The mutants do not compile:\n${complaints}`);
}

function filesBelow(named: readonly string[]): string[] {
  return testFiles(ROOT)
    .map(({ path }) => path)
    .filter((path) => named.some((one) => path === one || path.startsWith(`${one}/`)));
}

function rowOf({ mutant, foundBy, reachedBy }: Outcome): string {
  const { rule } = MUTANTS.find(({ name }) => name === mutant)!;
  const found = foundBy === undefined ? 'not found' : `${foundBy.file}: ${foundBy.test}`;
  return `| ${mutant} | ${rule} | ${reachedBy} | ${found} |`;
}

function copy(): TrialCheckout {
  const checkout = TrialCheckout.of(ROOT);
  open.add(checkout);
  return checkout;
}

function close(checkout: TrialCheckout): void {
  checkout[Symbol.dispose]();
  open.delete(checkout);
}
