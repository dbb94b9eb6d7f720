// tier: whole, because it asks a server of marimo, which starts for it
/**
 * marimo's own endpoint for agents is the oracle: the same code gives the same success, output, prints and errors in an
 * unmodified marimo and in Troupe, and leaves the same notebook. `differences.ts` lists where Troupe differs on purpose.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { DIFFERENCES } from './differences.ts';
import { NOTEBOOK_SITUATIONS } from './notebook-situations.ts';
import { startOurs } from './our-server.ts';
import { startMarimo } from './pristine-marimo.ts';
import { REFUSED_CELLS, REFUSED_SITUATIONS } from './refused-situations.ts';
import { SCRATCH_CALLS, SCRATCH_CELLS } from './scratch-situations.ts';
import {
  type Answer,
  type Cells,
  type Notebook,
  type Outcome,
  outcomeOf,
  type Situation,
} from './situation.ts';

const [marimo, ours] = await Promise.all([startMarimo(test), startOurs(test)]);
const scratch = await openBoth(SCRATCH_CELLS);
const refused = await openBoth(REFUSED_CELLS);
const differing = new Set<string>();

const MEMBERS = ['success', 'output', 'stdout', 'stderr', 'errors'] as const;

/** Returns the first difference, or undefined. */
function difference(mine: Outcome, theirs: Outcome) {
  for (const [call, answer] of theirs.answers.entries()) {
    const other = mine.answers[call]!;
    for (const member of MEMBERS) {
      const pair = [shown(other, answer)[member], answer[member]];
      if (JSON.stringify(pair[0]) !== JSON.stringify(pair[1]))
        return { call, member, ours: pair[0], marimo: pair[1] };
    }
  }
  if (JSON.stringify(mine.notebook) === JSON.stringify(theirs.notebook)) return undefined;
  return { member: 'notebook', ours: mine.notebook, marimo: theirs.notebook };
}

/** Removes messages of errors for which marimo gives none, because there is nothing to compare. */
function shown(mine: Answer, theirs: Answer): Answer {
  const silent = new Set(theirs.errors.flatMap(({ type, message }) => (message === null ? [type] : [])));
  return {
    ...mine,
    errors: mine.errors.map((error) => (silent.has(error.type) ? { ...error, message: null } : error)),
  };
}

interface Both {
  readonly marimo: Notebook;
  readonly ours: Notebook;
}

async function openBoth(cells: Cells): Promise<Both> {
  const [theirs, mine] = await Promise.all([marimo.open(cells), ours.open(cells)]);
  return { marimo: theirs, ours: mine };
}

async function compare(name: string, situation: Situation, shared?: Both): Promise<void> {
  const [theirs, mine] = await Promise.all([
    outcomeOf(marimo, situation, shared?.marimo),
    outcomeOf(ours, situation, shared?.ours),
  ]);
  const found = difference(mine, theirs);
  if (DIFFERENCES[name] === undefined) assert.deepEqual(found, undefined);
  else assert.equal(found?.member, DIFFERENCES[name].member, 'the difference is gone or another one');
  if (found !== undefined) differing.add(name);
}

for (const [name, code] of Object.entries(SCRATCH_CALLS)) {
  test(`as in marimo: ${name}`, () => compare(name, { calls: [code] }, scratch));
}
for (const [name, situation] of Object.entries(REFUSED_SITUATIONS)) {
  test(`as in marimo: ${name}`, () => compare(name, situation, refused));
}
test('as in marimo', { concurrency: 3 }, async (t) => {
  const each = Object.entries(NOTEBOOK_SITUATIONS).map(([name, situation]) =>
    t.test(name, () => compare(name, situation)),
  );
  await Promise.all(each);
});

test('every known difference from marimo still exists and is explained in docs/api.md', () => {
  assert.deepEqual([...differing].sort(), Object.keys(DIFFERENCES).sort());
  const page = readFileSync('docs/api.md', 'utf8').replace(/\s+/g, ' ');
  for (const { reason } of Object.values(DIFFERENCES)) assert.ok(page.includes(reason), reason);
});
