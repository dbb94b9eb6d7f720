/**
 * The JSON of the cells of large notebooks. A saved cell object never changes, so its JSON stays valid as long as the
 * object lives: a live notebook of megabytes is saved with every change, and most of its cells are unchanged.
 */
import { EncodedJson, writeJson } from '#src/core/json/json-write.ts';
import { encodeLongString, isLongString, type LongString } from '#src/core/json/prepared-strings.ts';
import { atOnce } from '#src/core/slices.ts';
import type { Cell } from '#src/wire/notebook.ts';

const known = new WeakMap<Cell, readonly Uint8Array[]>();
const longCodes = new WeakMap<Cell, LongString>();
const [OPEN, COMMA, CLOSE] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** Returns the JSON of the list of cells, in steps of up to a millisecond. Cells with known JSON take no time. */
export function* jsonOfCells(cells: readonly Cell[]): Generator<undefined, EncodedJson> {
  const pieces: Uint8Array[] = [OPEN];
  for (const [index, cell] of cells.entries()) {
    if (index > 0) pieces.push(COMMA);
    let json = known.get(cell);
    if (json === undefined) {
      json = yield* encode(cell);
      known.set(cell, json);
      yield;
    }
    pieces.push(...json);
  }
  pieces.push(CLOSE);
  return new EncodedJson(pieces);
}

/** Returns the approximate length of the cells' JSON in bytes; the exact one if it was made before. */
export function jsonBytesOf(cells: readonly Cell[]): number {
  const lengthOf = (cell: Cell) =>
    known.get(cell)?.reduce((sum, { byteLength }) => sum + byteLength, 0) ?? cell.code.length;
  return cells.reduce((sum, cell) => sum + lengthOf(cell), 0);
}

/** Returns a text that differs whenever the code differs: the code itself, or its digest when it is long. */
export function codeMark(cell: Cell): string {
  return isLongString(cell.code) ? `sha256:${atOnce(longCodeOf(cell)).digest}` : cell.code;
}

/** Returns `cell`, or `before` when that is equal. The JSON of unchanged code is used again. */
export function savedAgain(cell: Cell, before: Cell | undefined): Cell {
  if (before?.code !== cell.code) return cell;
  if (before.cell_id === cell.cell_id && before.options === cell.options) return before;
  const code = longCodes.get(before);
  if (code !== undefined) longCodes.set(cell, code);
  return cell;
}

function* encode(cell: Cell): Generator<undefined, readonly Uint8Array[]> {
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
