/** Comparisons of large notebooks: with many cells, and with long cells. */
import type { Comparison, Trial } from './comparison.ts';
import type { Session, Subject } from './subject.ts';

const CELLS = 2_000;
const LONG_CELLS = 14;
const LONG_CHARS = 2 ** 20;
const NOT_A_NOTEBOOK = 'it has no cells';
const TOO_SLOW = 'it runs one cell after the other, which would take minutes';
/** The parts that all of these comparisons share. */
const LARGE = {
  unit: 'ms',
  targets: {},
  absent: { limit: NOT_A_NOTEBOOK, jupyter: TOO_SLOW, 'jupyter-tuned': TOO_SLOW },
} as const;

/** Cells that do not depend on each other. */
const manyCells = (): string[] => Array.from({ length: CELLS }, (_, i) => `a${i} = ${i}`);
/** Returns the code of a cell with a text of 1 MiB, which is different for each number. */
const longCell = (number: number): string => `b${number} = "${'x'.repeat(LONG_CHARS)}"`;
const longCells = (): string[] => Array.from({ length: LONG_CELLS }, (_, i) => longCell(i));

/** How long it takes until a notebook of many cells can be used. */
export const manyCellsReady: Comparison = {
  ...LARGE,
  name: 'many-cells-ready',
  title: `A notebook of ${CELLS} cells is opened: until its session can run something`,
  perRound: 1,
  begin: (subject) => opening(subject, manyCells()),
};

/** How long a run of all cells of such a notebook takes. */
export const manyCellsRun: Comparison = {
  ...LARGE,
  name: 'many-cells-run',
  title: `All ${CELLS} cells of a notebook are run at once`,
  perRound: 1,
  begin: (subject) => inOpened(subject, manyCells(), (session) => session.run()),
};

/** How long a change of one cell of such a notebook takes. */
export const manyCellsEdit: Comparison = {
  ...LARGE,
  name: 'many-cells-edit',
  title: `One cell of ${CELLS} is changed and run`,
  perRound: 20,
  quickPerRound: 3,
  begin: (subject) => editing(subject, manyCells(), (number) => `a0 = ${number}`),
};

/** How long it takes until a notebook of many bytes can be used. */
export const longCellsReady: Comparison = {
  ...LARGE,
  name: 'long-cells-ready',
  title: `A notebook of ${LONG_CELLS} MiB in ${LONG_CELLS} cells is opened: until its session can run something`,
  perRound: 1,
  begin: (subject) => opening(subject, longCells()),
};

/** How long a change of a long cell takes. */
export const longCellEdit: Comparison = {
  ...LARGE,
  name: 'long-cell-edit',
  title: 'A cell of 1 MiB is changed and run',
  perRound: 3,
  quickPerRound: 1,
  begin: (subject) => editing(subject, [longCell(0)], (number) => `${longCell(0)}  # ${number}`),
};

/** Each sample opens a new notebook with these cells. */
async function opening(subject: Subject, codes: readonly string[]): Promise<Trial | undefined> {
  if (!canEdit(subject)) return undefined;
  return {
    async sample() {
      const open = await subject.prepare!(codes);
      const startedAt = performance.now();
      const session = await open();
      const tookMs = performance.now() - startedAt;
      await session.close();
      return [tookMs];
    },
    end: async () => undefined,
  };
}

/** Each sample changes the first cell of a notebook, and runs it. */
async function editing(
  subject: Subject,
  codes: readonly string[],
  codeOf: (number: number) => string,
): Promise<Trial | undefined> {
  let number = 0;
  return inOpened(subject, codes, (session) => session.edit!(0, codeOf(++number)));
}

async function inOpened(
  subject: Subject,
  codes: readonly string[],
  work: (session: Session) => Promise<number>,
): Promise<Trial | undefined> {
  if (!canEdit(subject)) return undefined;
  const session = await (await subject.prepare!(codes))();
  return {
    async sample() {
      const startedAt = performance.now();
      return [(await work(session)) - startedAt];
    },
    end: () => session.close(),
  };
}

/** Whether its sessions are of notebooks whose cells can be changed and run together. */
function canEdit({ prepare, editsCells }: Subject): boolean {
  return prepare !== undefined && editsCells === true;
}
