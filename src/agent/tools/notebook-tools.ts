import Type from 'typebox';
import type { WorkspaceId } from '#src/core/ids.ts';
import { inSlices } from '#src/core/slices.ts';
import type {
  CellsResult,
  NotebookCell,
  NotebookOutput,
  Notebooks,
  PythonResult,
} from './notebook-access.ts';
import { type ShownOutput, shownOutput } from './output-text.ts';
import { completed, cut, defineTool, failed, type Tool, type ToolImage, type ToolOutcome } from './tool.ts';

export interface NotebookToolsOptions {
  readonly notebooks: Notebooks;
  readonly workspaceId: WorkspaceId;
  readonly sessionId: string;
  /** Whether the model may edit the notebook and run code of its own; otherwise it can only run cells. */
  readonly isEditable: boolean;
}

const closed = { additionalProperties: false } as const;
const cellIds = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), { minItems: 1, maxItems: 100 });
const LISTED_CODE = 800;
const LISTED_OUTPUT = 400;
const READ_OUTPUT = 4_000;

/** Returns tools that read and run the conversation's notebook, and change it through code mode. */
export function notebookTools({
  notebooks,
  workspaceId,
  sessionId,
  isEditable,
}: NotebookToolsOptions): Tool[] {
  const cells = () => notebooks.cells(workspaceId, sessionId);
  const reading: Tool[] = [
    defineTool({
      name: 'read_notebook',
      description:
        'All cells of the notebook in their order, with their state; long code and outputs are cut.',
      schema: Type.Object({}, closed),
      run: async () =>
        completed(
          (await cellsText(await cells(), LISTED_CODE, LISTED_OUTPUT)) || 'The notebook has no cells.',
        ),
    }),
    defineTool({
      name: 'read_cells',
      description: 'The whole code of some cells, with their printed text and their outputs.',
      schema: Type.Object({ cellIds }, closed),
      run: async ({ cellIds: asked }) =>
        ofCells(await cells(), asked, async (found) =>
          completed(await cellsText(found, Number.POSITIVE_INFINITY, READ_OUTPUT)),
        ),
    }),
    defineTool({
      name: 'read_output',
      description: 'The output of one cell: tables as text, pictures as pictures.',
      schema: Type.Object({ cellId: Type.String({ minLength: 1, maxLength: 128 }) }, closed),
      run: async ({ cellId }) =>
        ofCells(await cells(), [cellId], ([cell]) => {
          if (cell === undefined) return failed('There is no such cell.');
          const shown = outputsText([cell.output]);
          return completed(
            [consoleText(cell.console), shown.text].filter(Boolean).join('\n') || 'It shows nothing.',
            shown.images,
          );
        }),
    }),
    defineTool({
      name: 'run_cells',
      description: 'Run cells of the notebook. Stale cells that they depend on run first.',
      schema: Type.Object({ cellIds }, closed),
      exclusive: true,
      run: async ({ cellIds: asked }, call) =>
        ofCells(await cells(), asked, async () =>
          cellsOutcome(await notebooks.runCells(workspaceId, sessionId, asked, call)),
        ),
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
      schema: Type.Object({ code: Type.String({ minLength: 1, maxLength: 200_000 }) }, closed),
      exclusive: true,
      run: async ({ code }, call) =>
        pythonOutcome(await notebooks.runPython(workspaceId, sessionId, code, call)),
    }),
    ...reading,
  ];
}

function ofCells<T extends ToolOutcome | Promise<ToolOutcome>>(
  cells: readonly NotebookCell[],
  asked: readonly string[],
  run: (found: readonly NotebookCell[]) => T,
): T | ToolOutcome {
  const unknown = asked.filter((id) => !cells.some(({ cellId }) => cellId === id));
  if (unknown.length === 0) return run(cells.filter(({ cellId }) => asked.includes(cellId)));
  return failed(
    `There is no cell ${unknown.join(', ')}. There are: ${cells.map(({ cellId }) => cellId).join(', ')}.`,
  );
}

function pythonOutcome({
  success,
  output,
  stdout,
  stderr,
  media,
  errors,
  touchedCells,
}: PythonResult): ToolOutcome {
  const shown = outputsText([...media, output]);
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
    touchedCells,
  };
}

async function cellsOutcome({ failure, cells }: CellsResult): Promise<ToolOutcome> {
  const images: ToolImage[] = [];
  const text = await mapInSlices(cells, ({ cellId, status, outputs, console }) => {
    const shown = outputsText(outputs);
    const figures = console.filter(({ channel }) => channel === 'media');
    images.push(...figures.flatMap((entry) => shownOutput(entry).images), ...shown.images);
    return [`## ${cellId}: ${status}`, consoleText(console), cut(shown.text, READ_OUTPUT)]
      .filter(Boolean)
      .join('\n');
  });
  if (failure !== null) text.push(`${failure.code}: ${failure.message}`);
  const touchedCells = cells.map(({ cellId }) => cellId);
  return { status: failure === null ? 'completed' : 'failed', text: text.join('\n\n'), images, touchedCells };
}

async function cellsText(
  cells: readonly NotebookCell[],
  codeLimit: number,
  outputLimit: number,
): Promise<string> {
  return (await mapInSlices(cells, (cell) => cellText(cell, codeLimit, outputLimit))).join('\n\n');
}

/** Maps the elements, and lets others use the event loop in between: the HTML of one cell takes some milliseconds. */
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
  const title = `## ${cell.cellId}${cell.name === '' ? '' : ` (${cell.name})`}: ${cell.status}`;
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

function consoleText(console: readonly NotebookOutput[]): string {
  return section('printed', console.map((entry) => shownOutput(entry).text).join(''));
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
