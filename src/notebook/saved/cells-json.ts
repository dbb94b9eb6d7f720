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

/** Returns the length of the cells' JSON in bytes: the exact length of JSON that was made before, otherwise an approximation. */
export function jsonBytesOf(cells: readonly Cell[]): number {
  const lengthOf = (cell: Cell) =>
    known.get(cell)?.reduce((sum, { byteLength }) => sum + byteLength, 0) ?? cell.code.length;
  return cells.reduce((sum, cell) => sum + lengthOf(cell), 0);
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
