import Type, { type TProperties } from 'typebox';
import { inSlices } from '#src/base/async/slices.ts';
import type {
  CellsResult,
  NotebookCell,
  NotebookOutput,
  OpenNotebook,
  PythonResult,
} from './notebook-access.ts';
import { type ShownOutput, shownOutput } from './output-text.ts';
import {
  completed,
  cut,
  defineTool,
  failed,
  type Tool,
  type ToolCall,
  type ToolImage,
  type ToolOutcome,
} from './tool.ts';

export interface NotebookToolsOptions<Call extends ToolCall> {
  /** Returns the notebook that a call is about. */
  readonly notebookOf: (call: Call) => OpenNotebook;
  /** Whether the model may edit the notebook and run new code; otherwise it can only run cells. */
  readonly isEditable: boolean;
  /** Further input members of every tool, such as the notebook's id. */
  readonly target?: TProperties;
  /** Further input members of the tools that run code, such as a time limit. */
  readonly limits?: TProperties;
}

const closed = { additionalProperties: false } as const;
const cellIds = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { minItems: 1, maxItems: 100 });
const LISTED_CODE = 800;
const LISTED_OUTPUT = 400;
const READ_OUTPUT = 4_000;

/** Returns the tools that read and run a notebook, and change it through code mode. */
export function notebookTools<Call extends ToolCall>({
  notebookOf,
  isEditable,
  target = {},
  limits = {},
}: NotebookToolsOptions<Call>): Tool<Call>[] {
  const reading: Tool<Call>[] = [
    defineTool({
      name: 'read_notebook',
      description:
        'All cells of the notebook in their order, with their state; long code and outputs are cut.',
      schema: Type.Object({ ...target }, closed),
      async run(_, call: Call) {
        const cells = await notebookOf(call).cells();
        const text = await cellsText(cells, LISTED_CODE, LISTED_OUTPUT);
        return completed(text || 'The notebook has no cells.', {
          cells: await mapInSlices(cells, (cell) => cellData(cell, LISTED_CODE, LISTED_OUTPUT)),
        });
      },
    }),
    defineTool({
      name: 'read_cells',
      description: 'The whole code of some cells, with their printed text and their outputs.',
      schema: Type.Object({ ...target, cellIds }, closed),
      run: async ({ cellIds: asked }, call: Call) =>
        ofCells(notebookOf(call), asked, async (found) =>
          completed(await cellsText(found, Number.POSITIVE_INFINITY, READ_OUTPUT), {
            cells: await mapInSlices(found, (cell) => cellData(cell, Number.POSITIVE_INFINITY, READ_OUTPUT)),
          }),
        ),
    }),
    defineTool({
      name: 'read_output',
      description: 'The output of one cell: tables as text, pictures as pictures.',
      schema: Type.Object({ ...target, cellId: Type.String({ minLength: 1, maxLength: 128 }) }, closed),
      run: async ({ cellId }, call: Call) =>
        ofCells(notebookOf(call), [cellId], ([cell]) => {
          if (cell === undefined) return failed('There is no such cell.');
          const shown = outputsText([cell.output]);
          return completed(
            [consoleText(cell.console), shown.text].filter(Boolean).join('\n') || 'It shows nothing.',
            { cell: cellData(cell, LISTED_CODE, Number.POSITIVE_INFINITY) },
            shown.images,
          );
        }),
    }),
    defineTool({
      name: 'run_cells',
      description: 'Run cells of the notebook. Stale cells that they depend on run first.',
      schema: Type.Object({ ...target, cellIds, ...limits }, closed),
      exclusive: true,
      async run({ cellIds: asked }, call: Call) {
        const notebook = notebookOf(call);
        const refusal = refusalOf(await notebook.cellIds(), asked);
        return refusal ?? cellsOutcome(await notebook.runCells(asked));
      },
    }),
  ];
  if (!isEditable) return reading;
  return [
    defineTool({
      name: 'run_python',
      description:
        'Run Python outside of the cells: it sees the variables of the cells. Its own names stay for later calls of this ' +
        'tool, but cells do not see them, and they are not saved. To add, change or remove cells use code mode in it:\n' +
        'import marimo._code_mode as cm\n' +
        'async with cm.get_context() as ctx:\n' +
        '    cell = ctx.create_cell("total = sum(numbers)\\ntotal", hide_code=False)\n' +
        '    ctx.run_cell(cell)\n' +
        'There are also ctx.edit_cell(id, code), ctx.delete_cell(id), ctx.move_cell(id, after=id), and ctx.cells[id].code, ' +
        'which must be read before a cell is edited. Only cells are kept with the notebook.',
      schema: Type.Object(
        { ...target, code: Type.String({ minLength: 1, maxLength: 200_000 }), ...limits },
        closed,
      ),
      exclusive: true,
      run: async ({ code }, call: Call) => pythonOutcome(await notebookOf(call).runPython(code)),
    }),
    ...reading,
  ];
}

/**
 * Reads the cells that a call names, and makes the outcome of the call from them. The outcome is a refusal
 * when a named cell is missing.
 */
async function ofCells(
  notebook: OpenNotebook,
  asked: readonly string[],
  run: (found: readonly NotebookCell[]) => ToolOutcome | Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const found = await notebook.cells(asked);
  const foundIds = new Set(found.map(({ cellId }) => cellId));
  if (asked.every((id) => foundIds.has(id))) return run(found);
  // A cell that somebody has added meanwhile counts as missing, because it was not read.
  return refusalOf(await notebook.cellIds(), asked, foundIds) ?? failed('There is no such cell.');
}

/** Returns the refusal of a call that names cells which the notebook does not have; undefined when it has all. */
function refusalOf(
  cellIds: readonly string[],
  asked: readonly string[],
  found: ReadonlySet<string> = new Set(cellIds),
): ToolOutcome | undefined {
  const unknown = asked.filter((id) => !found.has(id));
  if (unknown.length === 0) return undefined;
  return failed(`There is no cell ${unknown.join(', ')}. There are: ${cellIds.join(', ')}.`);
}

function pythonOutcome({
  success,
  output,
  stdout,
  stderr,
  media,
  errors,
  isTimedOut = false,
  touchedCells,
}: PythonResult): ToolOutcome {
  const shown = outputsText([...media, output]);
  const value = outputsText([output]).text;
  const text = [
    section('stdout', stdout),
    section('stderr', stderr),
    section('value', shown.text),
    ...errors.map(
      ({ type, message, cellId }) =>
        `${type}: ${message}${cellId === null ? '' : ` (in the cell ${cellId})`}`,
    ),
  ]
    .filter(Boolean)
    .join('\n');
  return {
    status: success ? 'completed' : 'failed',
    text: text || 'Done; it printed nothing.',
    images: shown.images,
    ...(touchedCells === undefined ? {} : { touchedCells }),
    data: {
      success,
      status: isTimedOut ? 'timed_out' : success ? 'completed' : 'failed',
      stdout: cut(stdout),
      stderr: cut(stderr),
      result: cut(value),
      ...(output?.table === undefined ? {} : { table: output.table }),
      errors,
      ...(touchedCells === undefined ? {} : { touchedCells }),
    },
  };
}

/** Returns the outcome of a run of cells: their outputs, and how the run ended. */
export async function cellsOutcome({
  failure,
  cells,
  runId,
  isRunning = false,
}: CellsResult): Promise<ToolOutcome> {
  const images: ToolImage[] = [];
  const data: Readonly<Record<string, unknown>>[] = [];
  const text = await mapInSlices(cells, ({ cellId, status, outputs, console }) => {
    const shown = outputsText(outputs);
    const figures = console.filter(({ channel }) => channel === 'media');
    images.push(...figures.flatMap((entry) => shownOutput(entry).images), ...shown.images);
    const result = cut(shown.text, READ_OUTPUT);
    data.push({
      cellId,
      status,
      printed: cut(printedText(console), READ_OUTPUT),
      result,
      ...tableOf(outputs),
    });
    return [`## ${cellId}: ${status}`, consoleText(console), result].filter(Boolean).join('\n');
  });
  if (failure !== null) text.push(`${failure.code}: ${failure.message}`);
  if (isRunning)
    text.push(`The run ${runId} has not ended yet. get_run waits for its end, cancel_run ends it.`);
  const touchedCells = cells.map(({ cellId }) => cellId);
  const status = failure === null ? 'completed' : 'failed';
  return {
    status,
    text: text.join('\n\n') || 'No cell has run.',
    images,
    touchedCells,
    data: {
      success: failure === null,
      status: isRunning ? 'running' : status,
      ...(runId === undefined ? {} : { runId }),
      cells: data,
      ...(failure === null ? {} : { error: failure }),
    },
  };
}

async function cellsText(
  cells: readonly NotebookCell[],
  codeLimit: number,
  outputLimit: number,
): Promise<string> {
  return (await mapInSlices(cells, (cell) => cellText(cell, codeLimit, outputLimit))).join('\n\n');
}

/** Maps the elements in slices: the HTML of one cell takes some milliseconds, and others must get the event loop in between. */
function mapInSlices<T, R>(elements: readonly T[], map: (element: T) => R): Promise<R[]> {
  return inSlices(
    (function* () {
      const mapped: R[] = [];
      for (const element of elements) {
        mapped.push(map(element));
        yield;
      }
      return mapped;
    })(),
  );
}

function cellText(cell: NotebookCell, codeLimit: number, outputLimit: number): string {
  const { cellId, name, status } = cell;
  const version = shownVersion(cell, codeLimit);
  const title = `## ${cellId}${name === '' ? '' : ` (${name})`}: ${status}${version === undefined ? '' : `, version ${version}`}`;
  return [
    title,
    '```python',
    cut(cell.code, codeLimit),
    '```',
    cut(consoleText(cell.console), outputLimit),
    cut(outputsText([cell.output]).text, outputLimit),
  ]
    .filter(Boolean)
    .join('\n');
}

/** Returns a cell as data, with the same limits as its text. */
function cellData(cell: NotebookCell, codeLimit: number, outputLimit: number) {
  const { cellId, name, status, code, output, console } = cell;
  const version = shownVersion(cell, codeLimit);
  return {
    cellId,
    name,
    status,
    ...(version === undefined ? {} : { version }),
    code: cut(code, codeLimit),
    printed: cut(printedText(console), outputLimit),
    result: cut(outputsText([output]).text, outputLimit),
    ...(outputLimit > LISTED_OUTPUT && output !== null ? tableOf([output]) : {}),
  };
}

/** Returns the version of a cell whose whole code is shown: a model that has read a part of it may not replace the rest. */
function shownVersion({ code, version }: NotebookCell, codeLimit: number): number | undefined {
  return code.length > codeLimit ? undefined : version;
}

/** Returns the last table among the outputs as data; undefined when there is none. */
function tableOf(outputs: readonly NotebookOutput[]) {
  const table = outputs.findLast((output) => output.table !== undefined)?.table;
  return table === undefined ? {} : { table };
}

function printedText(console: readonly NotebookOutput[]): string {
  return console.map((entry) => shownOutput(entry).text).join('');
}

function consoleText(console: readonly NotebookOutput[]): string {
  return section('printed', printedText(console));
}

function outputsText(outputs: readonly (NotebookOutput | null)[]): ShownOutput {
  const shown = outputs.flatMap((output) => (output === null ? [] : [shownOutput(output)]));
  return {
    text: shown
      .map(({ text }) => text)
      .filter(Boolean)
      .join('\n'),
    images: shown.flatMap(({ images }) => images),
  };
}

function section(title: string, text: string): string {
  const trimmed = text.trimEnd();
  return trimmed === '' ? '' : `${title}:\n${trimmed}`;
}
