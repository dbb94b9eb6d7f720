/** Results of runs and code calls in the forms that programs use: text, table, pictures as bytes, HTML. */
import type { NotebookRun } from '../wire/run.ts';
import type { CodeResult } from '../wire/session.ts';

/** An output, as runs and code calls have it. */
interface Output {
  readonly mimetype: string;
  readonly data?: unknown;
  readonly assetId?: string;
  readonly text?: string;
  readonly table?: Table;
}

/** The first rows of a table, with the size of the whole. */
export type Table = NonNullable<NonNullable<CodeResult['output']>['table']>;

export interface Picture {
  readonly mimetype: string;
  readonly bytes: Uint8Array;
}

/** An output in the forms that it has. */
export interface Shown {
  /** The value as text, such as its `repr`; empty when there is none. */
  readonly text: string;
  /** Undefined unless the value is a table. */
  readonly table: Table | undefined;
  /** Pictures, in the order in which they were shown. */
  readonly images: readonly Picture[];
  /** Undefined unless the value has HTML. It is as trustworthy as the notebook. */
  readonly html: string | undefined;
}

type CellResult = Extract<NonNullable<NotebookRun['output']>['parts'][number], { type: 'cell-result' }>;

/** The result of one cell. */
export interface CellOutcome extends Shown {
  readonly cellId: string;
  readonly status: CellResult['status'];
  readonly stdout: string;
  readonly stderr: string;
  readonly durationMs: number | null;
}

/** The result of a run that has ended. Its text, table, pictures and HTML are the output of its last cell. */
export interface RunOutcome extends Shown {
  readonly id: string;
  readonly success: boolean;
  readonly status: NotebookRun['status'];
  /** The reason why the run failed. The error of a cell is the text of that cell. */
  readonly error: NotebookRun['error'];
  /** The cells that ran, by their ids, in the order in which they ran. */
  readonly cells: Readonly<Record<string, CellOutcome>>;
  /** The record of the server. */
  readonly run: NotebookRun;
}

/** The result of a code call. A Python error is a result without success. */
export interface CodeOutcome extends Shown {
  readonly success: boolean;
  readonly stdout: string;
  readonly stderr: string;
  readonly errors: CodeResult['errors'];
  /** The output as the server sent it. */
  readonly output: CodeResult['output'];
}

/** Returns the bytes of an asset. */
export type ReadAsset = (assetId: string) => Promise<Uint8Array>;

/** Resolves with the result of a run. The pictures that are assets are read with `readAsset`. */
export async function runOutcome(run: NotebookRun, readAsset: ReadAsset): Promise<RunOutcome> {
  const { id, status, error, output } = run;
  const cells: Record<string, CellOutcome> = {};
  let last: Shown = NOTHING;
  for (const part of output?.parts ?? []) {
    if (part.type !== 'cell-result') continue;
    const { cellId, durationMs, console: printed } = part;
    const figures = printed.filter(({ channel }) => channel === 'media');
    const shown = await shownOf(part.outputs, figures, readAsset);
    const textOf = (name: string) =>
      printed.map(({ channel, ...entry }) => (channel === name ? textOfOutput(entry) : '')).join('');
    const [stdout, stderr] = [textOf('stdout'), textOf('stderr')];
    cells[cellId] = { cellId, status: part.status, stdout, stderr, durationMs, ...shown };
    last = shown;
  }
  return { id, status, success: status === 'completed', error, cells, run, ...last };
}

/** Resolves with the result of a code call. */
export async function codeOutcome(result: CodeResult): Promise<CodeOutcome> {
  const { success, stdout, stderr, errors, output, media } = result;
  const shown = await shownOf(output === null ? [] : [output], media, noAsset);
  return { success, stdout, stderr, errors, output, ...shown };
}

/** The result of a code call contains all values, so none is read as an asset. */
const noAsset: ReadAsset = async () => new Uint8Array();

const NOTHING: Shown = { text: '', table: undefined, images: [], html: undefined };

async function shownOf(
  outputs: readonly Output[],
  figures: readonly Output[],
  readAsset: ReadAsset,
): Promise<Shown> {
  const members = outputs.flatMap(membersOf);
  const images: Picture[] = [];
  for (const { mimetype, data, assetId } of [...figures, ...members]) {
    if (!mimetype.startsWith('image/')) continue;
    if (assetId !== undefined) images.push({ mimetype, bytes: await readAsset(assetId) });
    else if (typeof data === 'string') images.push({ mimetype, bytes: bytesOf(mimetype, data) });
  }
  const html = members.find(
    ({ mimetype, data }) => mimetype === 'text/html' && typeof data === 'string',
  )?.data;
  return {
    text: outputs.map(textOfOutput).filter(Boolean).join('\n'),
    table: outputs.find(({ table }) => table !== undefined)?.table,
    images,
    html: typeof html === 'string' ? html : undefined,
  };
}

function textOfOutput({ mimetype, data, text }: Output): string {
  return text ?? (typeof data === 'string' && mimetype === 'text/plain' ? data : '');
}

/** Returns the values of a bundle by their media types; of another output, itself. */
function membersOf(output: Output): readonly Output[] {
  const { mimetype, data } = output;
  if (mimetype !== 'application/vnd.marimo+mimebundle') return [output];
  const bundle: unknown = typeof data === 'string' ? JSON.parse(data) : data;
  return Object.entries(Object(bundle)).map(([type, member]) => ({ mimetype: type, data: member }));
}

/** Returns the bytes of a data URL, of Base64, or of the text of an SVG picture. */
function bytesOf(mimetype: string, data: string): Uint8Array {
  const [, isBase64, content = ''] = /^data:[^,]*?(;base64)?,(.*)$/s.exec(data) ?? [
    '',
    mimetype === 'image/svg+xml' ? undefined : ';base64',
    data,
  ];
  if (isBase64 !== undefined) return Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
  return new TextEncoder().encode(data.startsWith('data:') ? decodeURIComponent(content) : content);
}
