/** What the oracle tests try on two servers, and how the two answers are made comparable. */

/** Codes by cell id; they have run when the situation begins. */
export type Cells = Readonly<Record<string, string>>;

export interface Situation {
  readonly cells?: Cells;
  /** Python, one call after the other. */
  readonly calls: readonly string[];
}

export interface Answer {
  readonly success: boolean;
  readonly output: unknown;
  readonly stdout: string;
  readonly stderr: string;
  /** `message` is null where marimo gives none. */
  readonly errors: readonly {
    readonly type: string;
    readonly message: string | null;
    readonly cellId: string | null;
  }[];
}

/** An open notebook of either server. */
export interface Notebook {
  call(code: string): Promise<Answer>;
  /** Where the notebook is saved: what it is there. Otherwise its kernel is asked. */
  saved?(): Promise<readonly SavedCell[]>;
  close(): Promise<void>;
}

export interface Bench {
  open(cells: Cells): Promise<Notebook>;
}

export type SavedCell = readonly [
  id: string,
  code: string,
  name: string,
  config: Readonly<Record<string, unknown>>,
];

export interface Outcome {
  readonly answers: readonly Answer[];
  /** Code, name and settings of every cell at the end, in order. */
  readonly notebook: readonly unknown[];
}

/** Prints the document as the kernel has it. */
const LIST =
  'import json, marimo._code_mode as cm\nprint(json.dumps([[c.id, c.code, c.name, c.config.asdict()] for c in cm.get_context().cells]))';

/** Tries the situation; a notebook that is given is used and left open. */
export async function outcomeOf(
  bench: Bench,
  { cells = {}, calls }: Situation,
  shared?: Notebook,
): Promise<Outcome> {
  const notebook = shared ?? (await bench.open(cells));
  const answers: Answer[] = [];
  for (const code of calls) answers.push(await notebook.call(code));
  const listed = shared === undefined ? await listOf(notebook) : [];
  if (shared === undefined) await notebook.close();
  const ids = listed.map(([id]) => id);
  const text = JSON.stringify({ answers, notebook: listed }, (_, value) =>
    typeof value === 'string' ? comparable(value, ids, cells) : value,
  );
  return withoutRepeats(JSON.parse(text));
}

async function listOf(notebook: Notebook): Promise<readonly SavedCell[]> {
  if (notebook.saved !== undefined) return notebook.saved();
  return JSON.parse((await notebook.call(LIST)).stdout);
}

/** Paths, addresses and ids that were made up differ from run to run. */
function comparable(text: string, ids: readonly string[], cells: Cells): string {
  let result = text
    .replace(/"?\/[^\s"]*?__marimo__cell_\w+?_?\.py"?/g, '<cell>')
    .replace(/\/[^\s"]*\/(site-packages|python3\.\d+)\//g, '<$1>/')
    .replace(/0x[0-9a-f]+/g, '0x…')
    .replace(/Cycles detected: .*/g, (line) => line.replace(/'[A-Za-z]{4}'/g, '<new cell>'));
  ids.forEach((id, index) => {
    if (!(id in cells)) result = result.replaceAll(id, `<cell ${index + 1}>`);
  });
  return result;
}

/** marimo tells the same error again with each change of the graph: how often is not compared. */
function withoutRepeats({ answers, notebook }: Outcome): Outcome {
  return {
    notebook,
    answers: answers.map((answer) => ({
      ...answer,
      errors: [...new Map(answer.errors.map((error) => [JSON.stringify(error), error])).values()].sort(
        (a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1),
      ),
    })),
  };
}
