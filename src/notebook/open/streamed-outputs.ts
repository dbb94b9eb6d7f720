/**
 * Outputs as events carry them. An event refers to a large value, and the session serves the value as long as the notebook shows
 * it. So no frame with outputs or printed text has more than 1 MiB, the lowest limit that clients are known to have. The limits
 * here are chosen for that: a value within `MAX_INLINE_BYTES` has up to 384 KiB as JSON, and its text up to 120 KiB.
 */
import { createHash } from 'node:crypto';
import type { AssetId } from '#src/base/ids.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import type { EventData } from '#src/contract/wire/events.ts';
import type { Output } from '#src/contract/wire/output.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';
import { MAX_INLINE_BYTES, unbundle } from '#src/runtime/runs/run-output.ts';
import { beginning, bytesOfJson, end, fits, MAX_PIECE_CHARS } from '#src/runtime/sessions/event-size.ts';

/** The most bytes of a table as JSON. An output with a larger table has no table. */
const MAX_TABLE_BYTES = 256 * 1024;
/**
 * The most bytes of the entries of a console in one event. An entry with more bytes has an event to itself.
 */
const MAX_ENTRIES_BYTES = 128 * 1024;
/** The most bytes of each printed text in the event of a code call. The events `console-output` have the whole text. */
const MAX_PRINTED_BYTES = 64 * 1024;
/** The most bytes of the figures, and of the errors, in the event of a code call. */
const MAX_FIGURES_BYTES = 64 * 1024;
const MAX_ERRORS_BYTES = 48 * 1024;

/** The outputs that a notebook shows, each with the cell that shows it. */
export type ShownOutputs = Iterable<readonly [cellId: string, CellOutput]>;

/** The ids of outputs that were asked for. An output never changes, and hashing a large output takes long. */
const known = new WeakMap<CellOutput, AssetId>();

/**
 * Returns the id under which the session serves an output of a cell. The id is the same after a restart, because it depends only
 * on the cell and on the kernel's own marks of the output.
 */
function referenceTo(cellId: string, output: CellOutput): AssetId {
  const found = known.get(output);
  if (found !== undefined) return found;
  const { channel, mimetype, timestamp, data } = output;
  const marks = [cellId, channel, mimetype, timestamp, typeof data === 'string' ? data.length : null];
  const hash = createHash('sha256').update(JSON.stringify(marks)).digest('hex');
  const id = `asset_${hash.slice(0, 32)}` as AssetId;
  known.set(output, id);
  return id;
}

/**
 * Returns the large output with this id among the outputs that a notebook shows; undefined when it
 * shows none with this id.
 */
export function referencedOutput(shown: ShownOutputs, assetId: string): CellOutput | undefined {
  for (const [cellId, output] of shown)
    if (isLarge(output.data) && referenceTo(cellId, output) === assetId) return output;
  return undefined;
}

/** Returns the output of a cell, or a figure in its console, as an event carries it. */
function streamedOutput(cellId: string, output: CellOutput): Output {
  const { channel, mimetype, data } = output;
  const value = isLarge(data) ? { assetId: referenceTo(cellId, output) } : { data };
  return { channel, mimetype, ...value, ...describedBy(output) };
}

/** Returns a cell operation as events carry it: in one event, or in several when the entries of its console are too large for one. */
export function streamedOps(
  state: Omit<EventData<'cell-op'>, 'output' | 'console'>,
  output: CellOutput | undefined,
  console: readonly CellOutput[] | undefined,
): EventData<'cell-op'>[] {
  const { cellId } = state;
  const shown = output === undefined ? {} : { output: streamedOutput(cellId, output) };
  if (console === undefined || console.length === 0)
    return [{ ...state, ...shown, ...(console === undefined ? {} : { console: [] }) }];
  const [first = [], ...others] = entryLists(console.map((entry) => streamedEntry(cellId, entry)));
  const areTogether = output === undefined || fits(first, MAX_ENTRIES_BYTES);
  return [
    ...(areTogether
      ? [{ ...state, ...shown, console: first }]
      : [
          { ...state, ...shown },
          { cellId, console: first },
        ]),
    ...others.map((list) => ({ cellId, console: list })),
  ];
}

/**
 * Returns an entry of a console as an event carries it. The session serves large figures. Any other entry that is too large for a
 * frame becomes its text; the bridge never sends such an entry.
 */
function streamedEntry(cellId: string, entry: CellOutput): Output {
  const { channel, mimetype, data, text = '' } = entry;
  if (channel === 'media') return streamedOutput(cellId, entry);
  if (!isShortJson(data, MAX_PIECE_CHARS)) return { channel, mimetype: 'text/plain', data: text };
  return { channel, mimetype, data, ...describedBy(entry) };
}

/** Returns the entries of a console in lists for one event each. */
function entryLists(entries: readonly Output[]): Output[][] {
  if (entries.length === 1) return [[...entries]];
  const lists: Output[][] = [];
  let room = -1;
  for (const entry of entries) {
    const size = bytesOfJson(entry);
    if (size > room) {
      lists.push([]);
      room = MAX_ENTRIES_BYTES;
    }
    room -= size;
    lists.at(-1)!.push(entry);
  }
  return lists;
}

/**
 * Returns the result of a code call as its event carries it. `output` and `figures` are its value and its figures, each with the cell
 * that shows it.
 */
export function streamedResult(
  { success, stdout, stderr, errors }: CodeResult,
  output: readonly [cellId: string, CellOutput] | undefined,
  figures: readonly (readonly [cellId: string, CellOutput])[],
): EventData<'execution-completed'> {
  let room = MAX_FIGURES_BYTES;
  const media = figures.flatMap(([cellId, figure]): Output[] => {
    const size = isLarge(figure.data) ? 0 : bytesOfJson(figure);
    if (size > 0 && size <= room) {
      room -= size;
      return unbundle(figure);
    }
    return [{ mimetype: figure.mimetype, assetId: referenceTo(cellId, figure) }];
  });
  return {
    success,
    output: output === undefined ? null : streamedValue(...output),
    stdout: shortPrinted(stdout),
    stderr: shortPrinted(stderr),
    media,
    errors: firstErrors(errors),
  };
}

function streamedValue(cellId: string, output: CellOutput): Output {
  const { channel: _, ...value } = streamedOutput(cellId, output);
  return value;
}

function firstErrors(errors: CodeResult['errors']): CodeResult['errors'] {
  if (fits(errors, MAX_ERRORS_BYTES)) return errors;
  const kept: CodeResult['errors'][number][] = [];
  let room = MAX_ERRORS_BYTES;
  for (const error of errors) {
    const short = { ...error, message: beginning(error.message, MAX_ERRORS_BYTES / 4) };
    room -= bytesOfJson(short);
    if (room < 0) break;
    kept.push(short);
  }
  const message = `The answer of the call has ${errors.length - kept.length} more errors.`;
  return kept.length === errors.length ? kept : [...kept, { type: 'errors_left_out', message, cellId: null }];
}

/** Returns printed text; a long text without its middle. */
function shortPrinted(text: string): string {
  if (fits(text, MAX_PRINTED_BYTES)) return text;
  const head = beginning(text, MAX_PRINTED_BYTES / 2);
  const tail = end(text, MAX_PRINTED_BYTES / 2);
  return `${head}\n… ${text.length - head.length - tail.length} characters left out …\n${tail}`;
}

/** Returns whether a value becomes a reference. */
function isLarge(data: CellOutput['data']): boolean {
  if (typeof data === 'string')
    return data.length > MAX_INLINE_BYTES || Buffer.byteLength(data) > MAX_INLINE_BYTES;
  return !fits(data, MAX_INLINE_BYTES);
}

function describedBy({ text, table }: CellOutput): Pick<Output, 'text' | 'table'> {
  return {
    ...(text === undefined ? {} : { text }),
    ...(table === undefined || !fits(table, MAX_TABLE_BYTES) ? {} : { table }),
  };
}
