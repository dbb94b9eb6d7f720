/** The code that the oracle tests run on two servers, and the functions that make the results comparable. */

/** The code of each cell by its id. The cells have run when the situation begins. */
export type Cells = Readonly<Record<string, string>>;

/** Code to run, and the notebook that it runs in. */
export interface Situation {
  readonly cells?: Cells;
  /** Python code, one call after another. */
  readonly calls: readonly string[];
}

/** The result of a call. */
export interface Answer {
  readonly success: boolean;
  readonly output: unknown;
  readonly stdout: string;
  readonly stderr: string;
  /** `message` is null when marimo gives none. */
  readonly errors: readonly {
    readonly type: string;
    readonly message: string | null;
    readonly cellId: string | null;
  }[];
}

/** An open notebook of either server. */
export interface Notebook {
  call(code: string): Promise<Answer>;
  /** Returns the saved cells. Without this function the kernel is asked. */
  saved?(): Promise<readonly SavedCell[]>;
  close(): Promise<void>;
}

/** A server that can open notebooks. */
export interface Bench {
  open(cells: Cells): Promise<Notebook>;
}

/** A saved cell. */
export type SavedCell = readonly [
  id: string,
  code: string,
  name: string,
  config: Readonly<Record<string, unknown>>,
];

/** The results of a situation, in a form that can be compared. */
export interface Outcome {
  readonly answers: readonly Answer[];
  /** Code, name and settings of every cell at the end, in order. */
  readonly notebook: readonly unknown[];
}

/** Prints the document that the kernel has. */
const LIST =
  'import json, marimo._code_mode as cm\nprint(json.dumps([[c.id, c.code, c.name, c.config.asdict()] for c in cm.get_context().cells]))';

/** Runs the situation in a new notebook, or in `shared`, which stays open. */
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

/** Replaces paths, addresses and generated ids, which differ in each run. */
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

/** Removes repeated errors: marimo reports the same error again after each change of the graph. */
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
