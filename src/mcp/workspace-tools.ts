/** The tools that clients of MCP have in addition to those of the built-in agent: notebooks, runs and files of the workspace. */
import Type from 'typebox';
import { cellsOutcome } from '#src/agent/tools/notebook-tools.ts';
import { completed, cut, defineTool, failed, type Tool, type ToolOutcome } from '#src/agent/tools/tool.ts';
import { ApiError } from '#src/contract/client/api-error.ts';
import type { ChangedCells } from '#src/contract/wire/cell-changes.ts';
import type { NotebookSession } from '#src/contract/wire/session.ts';
import { type CellEdit, changeOf } from './cell-edits.ts';
import { awaitRun, ClientNotebook } from './client-notebook.ts';
import { Deadline } from './deadline.ts';
import type { McpCall } from './mcp-call.ts';
import type { NotebookLines } from './notebook-lines.ts';
import { closeSession, openSession } from './sessions.ts';

const closed = { additionalProperties: false } as const;
const id = (description: string) => Type.String({ minLength: 1, maxLength: 200, description });
const code = Type.String({ maxLength: 200_000 });

/** The member of the input that names the notebook. */
export const TARGET = {
  notebookId: id('The id of the notebook, as list_notebooks and open_notebook return it.'),
};

const VERSION = Type.Integer({
  minimum: 0,
  description:
    'The version of the cell as you have read it: read_cells and read_notebook show it with the whole code, and edit_cells after an edit.',
});

/** The time that code may take, in seconds. */
export const DEFAULT_TIMEOUT_S = 60;
const MAX_TIMEOUT_S = 3_600;

/** The member of the input that says how long code may run. */
export const LIMITS = {
  timeoutS: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_TIMEOUT_S,
      description: `How many seconds it may take; ${DEFAULT_TIMEOUT_S} if not given.`,
    }),
  ),
};

/** How much of a file is returned at once, in bytes: less than the characters that a result may have, so that none is left out. */
const FILE_PIECE_BYTES = 15 * 1024;
/** How long a notebook may take to open, in seconds: packages may have to be installed. */
const OPENING_S = 300;

/** Returns the tools. Calls that must be alone on a notebook wait in the notebook's line. */
export function workspaceTools(lines: NotebookLines): Tool<McpCall>[] {
  return [
    defineTool({
      name: 'list_notebooks',
      description: 'The saved notebooks of the workspace, the newest first.',
      schema: Type.Object(
        {
          title: Type.Optional(
            Type.String({ minLength: 1, maxLength: 200, description: 'Only titles that contain this text.' }),
          ),
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: '50 if not given.' })),
          after: Type.Optional(
            Type.String({ maxLength: 400, description: 'The nextCursor of the page before.' }),
          ),
        },
        closed,
      ),
      async run(page, { client, signal }: McpCall) {
        const { items, nextCursor } = await client.notebooks.list({ order: 'desc', ...page, signal });
        const notebooks = items.map(({ id: notebookId, title, cellCount, updatedAt }) => ({
          notebookId,
          title,
          cellCount,
          updatedAt,
        }));
        const text = notebooks.map(
          ({ notebookId, title, cellCount, updatedAt }) =>
            `${notebookId} ${title ?? '(no title)'}, ${cellCount} cells, changed ${updatedAt}`,
        );
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'There are no notebooks.', { notebooks, nextCursor });
      },
    }),
    defineTool({
      name: 'open_notebook',
      description:
        'Open a notebook and wait until its kernel is ready; without notebookId a new one is created, with these cells. ' +
        'Opening runs no cell. The other tools open a notebook by themselves.',
      schema: Type.Object(
        {
          notebookId: Type.Optional(TARGET.notebookId),
          title: Type.Optional(
            Type.String({ minLength: 1, maxLength: 200, description: 'The title of the new notebook.' }),
          ),
          cells: Type.Optional(
            Type.Array(
              Type.Object(
                {
                  cellId: Type.String({
                    minLength: 1,
                    maxLength: 128,
                    description: 'Unique in the notebook.',
                  }),
                  code,
                },
                closed,
              ),
              { maxItems: 1_000, description: 'The cells of the new notebook.' },
            ),
          ),
        },
        closed,
      ),
      async run({ notebookId: asked, title, cells = [] }, call: McpCall) {
        if (asked !== undefined && (title !== undefined || cells.length > 0))
          return failed('title and cells are for a new notebook: leave notebookId out, or use edit_cells.');
        const { client } = call;
        using deadline = new Deadline(call.signal, OPENING_S);
        const serialization = {
          cells: cells.map(({ cellId, code: source }) => ({ cell_id: cellId, code: source })),
        };
        const { signal } = deadline;
        signal.throwIfAborted();
        // The signal does not end the creation, because its answer names the notebook.
        const made =
          asked === undefined
            ? await client.notebooks.create({ ...(title === undefined ? {} : { title }), serialization })
            : undefined;
        try {
          return openedOutcome(await openSession({ ...call, signal }, made?.id ?? asked ?? ''));
        } catch (error) {
          if (made !== undefined) await client.notebooks.delete(made.id).catch(() => {});
          throw error;
        }
      },
    }),
    defineTool({
      name: 'edit_cells',
      description:
        'Create, replace, delete and move cells of an open notebook, in this order; all of it or nothing. Read a cell before ' +
        'you replace or delete it: the edit names the version that you have read, and is refused if somebody has changed the ' +
        'cell since. Created and replaced cells run at the end, unless run is false.',
      schema: Type.Object(
        {
          ...TARGET,
          edits: Type.Array(
            Type.Union([
              Type.Object(
                {
                  type: Type.Literal('create'),
                  code,
                  name: Type.Optional(Type.String({ maxLength: 128, pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
                  after: Type.Optional(id('The cell behind which it is put; at the end if not given.')),
                },
                closed,
              ),
              Type.Object(
                { type: Type.Literal('replace'), cellId: id('The cell.'), version: VERSION, code },
                closed,
              ),
              Type.Object(
                { type: Type.Literal('delete'), cellId: id('The cell.'), version: VERSION },
                closed,
              ),
              Type.Object(
                { type: Type.Literal('move'), cellId: id('The cell.'), after: id('The cell before it.') },
                closed,
              ),
            ]),
            { minItems: 1, maxItems: 100 },
          ),
          run: Type.Optional(Type.Boolean({ description: 'Whether changed cells run; true if not given.' })),
          ...LIMITS,
        },
        closed,
      ),
      exclusive: true,
      run: ({ edits, run = true }, call: McpCall) => editCells(edits, run, call, lines),
    }),
    defineTool({
      name: 'get_run',
      description:
        'How a run ended, with the outputs and the printed text of its cells. It waits for the end of a run that goes on.',
      schema: Type.Object({ runId: id('The id of the run, as run_cells returns it.'), ...LIMITS }, closed),
      async run({ runId, timeoutS = DEFAULT_TIMEOUT_S }, call: McpCall) {
        return cellsOutcome(await awaitRun(call, runId, timeoutS));
      },
    }),
    defineTool({
      name: 'cancel_run',
      description: 'Cancel a run that goes on: its cells are interrupted.',
      schema: Type.Object({ runId: id('The id of the run, as run_cells returns it.') }, closed),
      async run({ runId }, { client, signal }: McpCall) {
        const { status } = await client.runs.cancel(runId, { signal });
        return completed(`The run ${runId} is being cancelled.`, { runId, status });
      },
    }),
    defineTool({
      name: 'list_files',
      description: 'Files and folders of the workspace, which is the working folder of its notebooks.',
      schema: Type.Object(
        {
          prefix: Type.Optional(
            Type.String({
              maxLength: 1024,
              description: 'The beginning of the paths, such as `data/` for a folder.',
            }),
          ),
          after: Type.Optional(
            Type.String({ minLength: 1, maxLength: 1024, description: 'The nextCursor of the page before.' }),
          ),
        },
        closed,
      ),
      async run(page, { client, signal }: McpCall) {
        const { items, nextCursor } = await client.files.list({ ...page, limit: 500, signal });
        const files = items.map(({ path, type, bytes, updatedAt }) => ({ path, type, bytes, updatedAt }));
        const text = files.map(({ path, bytes }) => (bytes === null ? path : `${path} ${bytes} bytes`));
        if (nextCursor !== null) text.push(`[more: after ${nextCursor}]`);
        return completed(text.join('\n') || 'There are no files.', { files, nextCursor });
      },
    }),
    defineTool({
      name: 'read_file',
      description: `A file of the workspace: text, ${FILE_PIECE_BYTES / 1024} KiB of it at a time, or a picture.`,
      schema: Type.Object(
        {
          path: Type.String({ minLength: 1, maxLength: 1024 }),
          offset: Type.Optional(
            Type.Integer({ minimum: 0, description: 'The nextOffset of the piece before, in bytes.' }),
          ),
        },
        closed,
      ),
      run: ({ path, offset = 0 }, call: McpCall) => readFile(path, offset, call),
    }),
    defineTool({
      name: 'write_file',
      description: 'Write a file of the workspace, and replace an existing file with this path.',
      schema: Type.Object(
        {
          path: Type.String({ minLength: 1, maxLength: 1024 }),
          content: Type.String({ maxLength: 3_000_000 }),
          encoding: Type.Optional(
            Type.Unsafe<'utf-8' | 'base64'>(
              Type.String({
                enum: ['utf-8', 'base64'],
                description: 'The encoding of the content; utf-8 if not given.',
              }),
            ),
          ),
        },
        closed,
      ),
      async run({ path, content, encoding = 'utf-8' }, { client, signal }: McpCall) {
        const entry = await client.files.put(path, Buffer.from(content, encoding), { signal });
        return completed(`Written: ${entry.path}, ${entry.bytes} bytes.`, {
          path: entry.path,
          bytes: entry.bytes,
        });
      },
    }),
    defineTool({
      name: 'close_notebook',
      description:
        'Close an open notebook: its kernel and its variables end; cells, outputs and runs are kept.',
      schema: Type.Object(TARGET, closed),
      async run({ notebookId }, call: McpCall) {
        const { status } = await closeSession(call, notebookId);
        return completed(`The notebook ${notebookId} is closed.`, { notebookId, status });
      },
    }),
  ];
}

function openedOutcome({ notebookId, status, cells }: NotebookSession): ToolOutcome {
  const listed = cells.map(({ cellId, name, status: state }) => ({ cellId, name, status: state }));
  const text = [
    `The notebook ${notebookId} is open.`,
    ...listed.map(
      ({ cellId, name, status: state }) => `${cellId}${name === '' ? '' : ` (${name})`}: ${state}`,
    ),
  ];
  return completed(text.join('\n'), { notebookId, status, cells: listed });
}

/** Edits cells in one request, so that a refused edit does not change the notebook, and then runs those that it has made or replaced. */
async function editCells(
  edits: readonly CellEdit[],
  run: boolean,
  call: McpCall,
  lines: NotebookLines,
): Promise<ToolOutcome> {
  const notebook = new ClientNotebook(call, lines);
  let changed: ChangedCells['cells'];
  try {
    changed = (await notebook.change(edits.map(changeOf))).cells;
  } catch (error) {
    if (error instanceof ApiError && EDIT_REFUSALS.has(error.code)) return refusedEdit(error);
    throw error;
  }
  const versions = new Map(
    changed.flatMap(({ cellId, version }) => (version === null ? [] : [[cellId, version] as const])),
  );
  const newCode = changed.flatMap(({ cellId }, i) => (/create|replace/.test(edits[i]!.type) ? cellId : []));
  const toRun = [...new Set(newCode)].filter((cellId) => versions.has(cellId));
  const ran = run && toRun.length > 0 ? await ranOutcome(notebook, toRun) : DONE;
  const cells = await notebook.cells([...versions.keys()]);
  const listed = cells.map(({ cellId, name, status, code: source }) => ({
    cellId,
    name,
    status,
    version: versions.get(cellId), // made by this edit; the model has read no later version
    code: cut(source, 800),
  }));
  const text = listed.map(({ cellId, status, version }) => `${cellId}: ${status}, version ${version}`);
  return {
    ...ran,
    text: [text.join('\n'), ran.text].filter(Boolean).join('\n\n') || 'Done.',
    data: { ...ran.data, cells: listed.map((cell) => ({ ...resultIn(ran, cell.cellId), ...cell })) },
  };
}

/** The outcome of edits that run nothing. */
const DONE: ToolOutcome = { status: 'completed', text: '', data: { success: true, status: 'completed' } };

/** Refusals that depend on the present cells: a model that reads them again can correct its edit. */
const EDIT_REFUSALS: ReadonlySet<string> = new Set([
  'stale_update',
  'unknown_cell',
  'duplicate_cell',
  'invalid_request',
]);

function refusedEdit({ code: type, message }: ApiError): ToolOutcome {
  const advice =
    type === 'stale_update'
      ? ' Call read_cells, and base the edit on the code and the version that they have now.'
      : '';
  const text = `${type}: ${message} Nothing was changed.${advice}`;
  const error = { code: type, message: text };
  return { status: 'failed', text, data: { success: false, status: 'refused', cells: [], error } };
}

/** Runs edited cells. The edit stays when their run is refused. */
async function ranOutcome(notebook: ClientNotebook, cellIds: readonly string[]): Promise<ToolOutcome> {
  try {
    return await cellsOutcome(await notebook.runCells(cellIds));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { code: type, message } = error;
    const text = `The cells are edited, but have not run. ${type}: ${message}`;
    return {
      status: 'failed',
      text,
      data: { success: false, status: 'failed', error: { code: type, message } },
    };
  }
}

/** Returns the printed text and the result of a cell that has run. */
function resultIn({ data }: ToolOutcome, cellId: string): object {
  const results = (data?.cells ?? []) as readonly { readonly cellId: string }[];
  return results.find((one) => one.cellId === cellId) ?? {};
}

const PICTURE = /^image\/(png|jpeg|gif|webp)$/;
const PICTURE_OF: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};
const MAX_PICTURE_BYTES = 768 * 1024;

async function readFile(path: string, offset: number, { client, signal }: McpCall): Promise<ToolOutcome> {
  const extension = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? '';
  const mimetype = PICTURE_OF[extension] ?? '';
  const lastByte = offset + (PICTURE.test(mimetype) ? MAX_PICTURE_BYTES : FILE_PIECE_BYTES) - 1;
  const response = await client.files.open(path, {
    signal,
    headers: { range: `bytes=${offset}-${lastByte}` },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const [, total] = /\/(\d+)$/.exec(response.headers.get('content-range') ?? '') ?? [];
  const size = total === undefined ? bytes.byteLength : Number(total);
  const end = offset + bytes.byteLength;
  if (PICTURE.test(mimetype) && offset === 0 && end >= size)
    return completed(`[${mimetype}, ${size} bytes]`, { path, mimetype, bytes: size }, [{ mimetype, bytes }]);
  const text = textOf(bytes, end >= size);
  if (text === undefined) return completed(`[${size} bytes that are not text]`, { path, bytes: size });
  const nextOffset = offset + Buffer.byteLength(text) < size ? offset + Buffer.byteLength(text) : null;
  const note = nextOffset === null ? '' : `\n[${size} bytes in all; more from offset ${nextOffset}]`;
  return { status: 'completed', text: text + note, data: { path, text, bytes: size, nextOffset } };
}

/** Returns the bytes as text, without a character that is cut off at the end; undefined when they are not UTF-8. */
function textOf(bytes: Buffer, isEnd: boolean): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isEnd });
  } catch {
    return undefined;
  }
}
