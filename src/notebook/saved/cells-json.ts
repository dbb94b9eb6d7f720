/**
 * The JSON of the cells of large notebooks. A live notebook of megabytes is saved with every change, but most of its cells are
 * unchanged. A saved cell object never changes, so its JSON stays valid as long as the object lives.
 */

import { atOnce } from '#src/base/async/slices.ts';
import { EncodedJson, isShortJson, writeJson } from '#src/base/json/json-write.ts';
import { encodeLongString, isLongString, type LongString } from '#src/base/json/prepared-strings.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';

const known = new WeakMap<Cell, readonly Uint8Array[]>();
const longCodes = new WeakMap<Cell, LongString>();
const [OPEN, COMMA, CLOSE] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** How many neighbours are in one block at most, and their bytes. */
export const MAX_BLOCK_CELLS = 256;
const MAX_BLOCK_BYTES = 64 * 1024;

/**
 * Neighbours whose JSON is one piece, so that a notebook of ten thousand cells has some tens of pieces. A cell whose JSON has several
 * pieces, because its code is long, is a block of its own.
 */
interface Block {
  readonly cells: readonly Cell[];
  readonly json: readonly Uint8Array[];
}

/** The blocks by their first cells. */
const blocks = new WeakMap<Cell, Block>();

/**
 * Returns the JSON of the list of cells, in steps of up to a millisecond. Cells with known JSON take no time. Neighbours that were
 * neighbours in an earlier list take less: their common JSON is used again.
 */
export function* jsonOfCells(cells: readonly Cell[]): Generator<undefined, EncodedJson> {
  const pieces: Uint8Array[] = [OPEN];
  for (let from = 0; from < cells.length; ) {
    const block = blockAt(cells, from) ?? (yield* makeBlock(cells, from));
    if (from > 0) pieces.push(COMMA);
    pieces.push(...block.json);
    from += block.cells.length;
  }
  pieces.push(CLOSE);
  return new EncodedJson(pieces);
}

/** Returns the block that begins at this place of the list; undefined when none does. */
function blockAt(cells: readonly Cell[], from: number): Block | undefined {
  const block = blocks.get(cells[from]!);
  if (block === undefined) return undefined;
  const { length } = block.cells;
  for (let i = 0; i < length; i++) if (block.cells[i] !== cells[from + i]) return undefined;
  return block;
}

/** Makes the block that begins at this place. It ends before a block that stays as it is, unless both fit into one. */
function* makeBlock(cells: readonly Cell[], from: number): Generator<undefined, Block> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for (let at = from; at < cells.length && pieces.length < MAX_BLOCK_CELLS; at++) {
    const cell = cells[at]!;
    const next = at > from && blocks.has(cell) ? blockAt(cells, at) : undefined;
    if (next !== undefined && pieces.length + next.cells.length > MAX_BLOCK_CELLS) break;
    let json = known.get(cell);
    if (json === undefined) {
      json = yield* encode(cell);
      known.set(cell, json);
      yield;
    }
    const [piece, ...more] = json;
    if (piece === undefined || more.length > 0) {
      if (at === from) return keptBlock([cell], json);
      break;
    }
    bytes += piece.byteLength;
    if (at > from && bytes > MAX_BLOCK_BYTES) break;
    pieces.push(piece);
  }
  const members = cells.slice(from, from + pieces.length);
  return keptBlock(members, members.length === 1 ? pieces : [joined(members, pieces)]);
}

function keptBlock(cells: readonly Cell[], json: readonly Uint8Array[]): Block {
  for (const cell of cells) blocks.delete(cell); // a block that began with one of them would never be used again
  const block = { cells, json };
  blocks.set(cells[0]!, block);
  return block;
}

/** Returns the JSON of neighbours as one piece, of which the JSON of each is a part from now on. */
function joined(cells: readonly Cell[], pieces: readonly Uint8Array[]): Buffer {
  const separated: Uint8Array[] = [];
  for (const piece of pieces) separated.push(COMMA, piece);
  const whole = Buffer.concat(separated).subarray(COMMA.byteLength);
  let at = 0;
  for (const [index, { byteLength }] of pieces.entries()) {
    known.set(cells[index]!, [whole.subarray(at, at + byteLength)]);
    at += byteLength + COMMA.byteLength;
  }
  return whole;
}

function bytesOf(json: readonly Uint8Array[]): number {
  let bytes = 0;
  for (const { byteLength } of json) bytes += byteLength;
  return bytes;
}

/** Returns the length of the cells' JSON in bytes: the exact length of JSON that was made before, otherwise an approximation. */
export function jsonBytesOf(cells: readonly Cell[]): number {
  let bytes = 0;
  for (const cell of cells) {
    const json = known.get(cell);
    bytes += json === undefined ? cell.code.length : bytesOf(json);
  }
  return bytes;
}

/** Cells that are about to be saved and that have JSON, by their ids. */
const prepared = new Map<string, Set<Cell>>();

/**
 * Makes the JSON of a request's cells in steps, before the notebook is saved with these cells. The caller disposes of the result
 * after that.
 */
export function* preparingCells(cells: readonly Cell[]): Generator<undefined, Disposable> {
  yield* jsonOfCells(cells);
  for (const cell of cells) prepared.set(cell.cell_id, (prepared.get(cell.cell_id) ?? new Set()).add(cell));
  return {
    [Symbol.dispose]() {
      for (const cell of cells) {
        const others = prepared.get(cell.cell_id);
        if (others?.delete(cell) && others.size === 0) prepared.delete(cell.cell_id);
      }
    },
  };
}

/** Returns a text that differs whenever the code differs: the code itself, or its digest when it is long. */
export function codeMark(cell: Cell): string {
  return isLongString(cell.code) ? `sha256:${atOnce(longCodeOf(cell)).digest}` : cell.code;
}

/** Returns `before` or a prepared cell if it equals `cell`, so that its JSON is used again. Otherwise returns `cell`. */
export function savedAgain(cell: Cell, before: Cell | undefined): Cell {
  if (before !== undefined && isEqual(cell, before)) return before;
  for (const one of prepared.get(cell.cell_id) ?? []) if (isEqual(cell, one)) return one;
  if (before?.code !== cell.code) return cell;
  const code = longCodes.get(before);
  if (code !== undefined) longCodes.set(cell, code);
  return cell;
}

function isEqual(one: Cell, other: Cell): boolean {
  return (
    one.code === other.code && one.cell_id === other.cell_id && hasEqualMembers(one.options, other.options)
  );
}

function hasEqualMembers(one: Cell['options'], other: Cell['options']): boolean {
  if (one === other) return true;
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

function* encode(cell: Cell): Generator<undefined, readonly Uint8Array[]> {
  if (isShortJson(cell)) return [Buffer.from(JSON.stringify(cell))]; // most cells are short, and for them the writer's steps would take twice as long
  if (!isLongString(cell.code)) return yield* writeJson(cell);
  const code = (yield* longCodeOf(cell)).json;
  return yield* writeJson({ ...cell, code });
}

function* longCodeOf(cell: Cell): Generator<undefined, LongString> {
  let code = longCodes.get(cell);
  if (code === undefined) {
    code = yield* encodeLongString(cell.code);
    longCodes.set(cell, code);
  }
  return code;
}
