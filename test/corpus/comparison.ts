/**
 * The corpus: every cell of marimo's tutorials and snippets and of our own notebooks has the same id, code, status, outputs
 * and console as in unmodified marimo in the same Python. `differences.ts` lists the exceptions with their reasons.
 * Several test files share it, so that none of them takes long.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import test from 'node:test';
import { startServer } from '#test/support/server-fixture.ts';
import { type CorpusNotebook, findCorpus, PYTHON } from './corpus.ts';
import { DIFFERENCES, LEFT_OUT } from './differences.ts';
import { type Runner, startMarimoRunner } from './marimo-runner.ts';
import { MEMBERS, type ShownCell } from './shown-cell.ts';
import { troupeRunner } from './troupe-runner.ts';

/** Notebooks, and the interpreter that runs them. */
export interface Corpus {
  readonly python: string;
  readonly notebooks: readonly CorpusNotebook[];
}

/**
 * Makes a test of each notebook of the corpus whose name matches, and one of the table entries
 * about these notebooks.
 */
export async function compareWithMarimo(
  matches: RegExp,
  atLeast: number,
  { python, notebooks }: Corpus = { python: PYTHON, notebooks: findCorpus() },
): Promise<void> {
  const corpus = notebooks.filter(({ name }) => matches.test(name));
  const compared = corpus.filter(({ name }) => !(name in LEFT_OUT));
  const ours = troupeRunner(await startServer(test, { TROUPE_PRELOAD: 'true', TROUPE_PYTHON: python }));
  // Each side goes through the corpus on its own, and does not wait for the other.
  const [theirs, mine] = [inTurn(compared, startMarimoRunner(test, python)), inTurn(compared, ours)];

  test(`there are at least ${atLeast} such notebooks, and the tables name only such notebooks`, () => {
    assert.ok(compared.length >= atLeast, `${compared.length}`);
    const names = new Set(corpus.map(({ name }) => name));
    for (const name of [...Object.keys(DIFFERENCES), ...Object.keys(LEFT_OUT)])
      assert.ok(!matches.test(name) || names.has(name), `${name} is not in the corpus`);
  });

  for (const { name } of compared) {
    test(`as in marimo, except for the listed differences: ${name}`, async () => {
      const [expected, actual] = await Promise.all([theirs.get(name), mine.get(name)]);
      assert.ok(expected !== undefined && actual !== undefined);
      compareCells(name, expected, actual);
    });
  }
}

function compareCells(name: string, expected: readonly ShownCell[], actual: readonly ShownCell[]): void {
  assert.equal(actual.length, expected.length, 'the number of cells');
  const listed = DIFFERENCES[name] ?? [];
  for (const [index, cell] of expected.entries()) {
    const members = listed.find((difference) => difference.cell === index)?.members ?? [];
    for (const member of MEMBERS) {
      const where = `${member} of cell ${index}`;
      if (members.includes(member))
        assert.notDeepEqual(actual[index]?.[member], cell[member], `${where}: the difference has vanished`);
      else assert.deepEqual(short(actual[index]?.[member]), short(cell[member]), where);
    }
  }
}

/** Runs notebooks, one after the other. Returns promises of their outputs, by name. */
function inTurn(notebooks: readonly CorpusNotebook[], run: Runner) {
  const shown = new Map<string, Promise<readonly ShownCell[]>>();
  let last: Promise<unknown> = Promise.resolve();
  for (const notebook of notebooks) {
    const cells = last.then(() => run(notebook));
    last = cells.catch(() => {}); // the test of that notebook reports it
    shown.set(notebook.name, cells);
  }
  return shown;
}

/** Cuts the middle out of long texts; their beginning, end and length suffice to compare them. */
function short(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value ?? null, (_, text) =>
      typeof text === 'string' && text.length > 4000 ? summary(text) : text,
    ),
  );
}

function summary(text: string): string {
  return `${text.slice(0, 1500)}… ${text.length} characters, SHA-256 ${createHash('sha256').update(text).digest('hex')} …${text.slice(-500)}`;
}
