/**
 * Writes large JSON in pieces: a single `JSON.stringify` of megabytes would stop the server for too
 * long.
 */

import { cutText, placeToCut } from '../text/cut-text.ts';
import { joined } from '../text/joined-bytes.ts';

/** A value whose JSON is about this long, or shorter, is written at once. */
const MAX_PIECE_CHARS = 32 * 1024;
/** The charge for each value in addition to its characters. */
const VALUE_CHARS = 8;

/** A value whose JSON was made before; it takes the place of the value when JSON is written here. */
export class EncodedJson {
  readonly pieces: readonly Uint8Array[];

  constructor(pieces: readonly Uint8Array[]) {
    this.pieces = pieces;
  }

  get byteLength(): number {
    return this.pieces.reduce((sum, { byteLength }) => sum + byteLength, 0);
  }
}

/** A value whose JSON is made while it is read for the first time, and is the same for all its readers. */
export class SharedJson {
  readonly #source: Iterator<Uint8Array>;
  readonly #made: Uint8Array[] = [];
  #madeBytes = 0;

  readonly #grown: () => void;

  /** The value must not change. `grown` is called after each piece that was made. */
  constructor(value: unknown, grown: () => void) {
    this.#source = jsonPieces(value);
    this.#grown = grown;
  }

  /** The bytes that are in memory. */
  get madeBytes(): number {
    return this.#madeBytes;
  }

  /** Yields all pieces. */
  *pieces(): Generator<Uint8Array> {
    for (let index = 0; ; index++) {
      if (index === this.#made.length) {
        const { done, value } = this.#source.next();
        if (done === true) return;
        this.#made.push(value);
        this.#madeBytes += value.byteLength;
        this.#grown();
      }
      yield this.#made[index]!;
    }
  }
}

/** The JSON of long strings that was made ahead (`prepared-strings.ts`). */
export const preparedJson = new Map<string, EncodedJson>();
/** The JSON of objects that was made ahead (`prepareObject`). */
const preparedObjects = new WeakMap<object, EncodedJson>();

/**
 * Makes the JSON of an object or a list in steps, for all later writes. The object or list must not change
 * from now on.
 */
export function* prepareObject(value: object): Generator<undefined, void> {
  preparedObjects.set(value, new EncodedJson(yield* writeJson(value)));
}

/**
 * Returns whether the JSON of a value is short enough to be written at once. Stops looking once the
 * JSON is too long.
 */
export function isShortJson(value: unknown, maxChars = MAX_PIECE_CHARS): boolean {
  return roomAfter(value, maxChars) >= 0;
}

/**
 * Returns the number of characters that the JSON of a value leaves of `room`; less than 0 when the JSON is
 * too long.
 */
function roomAfter(value: unknown, maxChars: number): number {
  let room = maxChars;
  /**
   * Values that are not counted yet. Most texts and numbers are never in this list, because they are counted
   * as soon as they are found.
   */
  const open = [value];
  while (open.length > 0 && room >= 0) {
    const next = open.pop();
    room -= VALUE_CHARS;
    if (typeof next === 'string') room -= next.length;
    else if (Array.isArray(next)) {
      for (let i = 0; i < next.length && room >= 0; i++) {
        const item: unknown = next[i];
        if (typeof item === 'object' && item !== null) open.push(item);
        else room -= typeof item === 'string' ? item.length + VALUE_CHARS : VALUE_CHARS;
      }
    } else if (next instanceof EncodedJson || next instanceof SharedJson) return -1;
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        const member = (next as Readonly<Record<string, unknown>>)[name];
        room -= name.length;
        if (typeof member === 'object' && member !== null) open.push(member);
        else room -= typeof member === 'string' ? member.length + VALUE_CHARS : VALUE_CHARS;
        if (room < 0) return room;
      }
    }
  }
  return room;
}

/**
 * Returns the JSON of plain data in pieces, in steps of up to a millisecond. Together the pieces
 * are the text of `JSON.stringify`, as UTF-8. The value must not change before the end.
 */
export function* writeJson(value: unknown): Generator<undefined, Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for (const piece of jsonPieces(value)) {
    pieces.push(piece);
    yield;
  }
  return pieces;
}

/** Returns the text of `writeJson` as one piece. */
export function* joinedJson(value: unknown): Generator<undefined, Buffer> {
  return yield* joined(yield* writeJson(value));
}

/** Yields the pieces of `writeJson` one by one, on demand. */
export function* jsonPieces(value: unknown): Generator<Uint8Array, undefined> {
  const rest = new PieceText();
  yield* write(rest, value);
  if (!rest.isEmpty) yield rest.take();
}

/** The text of the piece that is being made. */
class PieceText {
  #text = '';

  get isEmpty(): boolean {
    return this.#text === '';
  }

  get isFull(): boolean {
    return this.#text.length >= MAX_PIECE_CHARS;
  }

  add(text: string): void {
    this.#text += text;
  }

  take(): Buffer {
    const piece = Buffer.from(this.#text);
    this.#text = '';
    return piece;
  }
}

function* write(to: PieceText, value: unknown): Generator<Uint8Array> {
  if (isShortJson(value)) {
    to.add(JSON.stringify(value) ?? 'null');
    if (to.isFull) yield to.take();
  } else if (value instanceof EncodedJson) {
    if (!to.isEmpty) yield to.take();
    yield* value.pieces;
  } else if (value instanceof SharedJson) {
    if (!to.isEmpty) yield to.take();
    yield* value.pieces();
  } else if (typeof value === 'string') {
    const known = preparedJson.get(value);
    yield* known === undefined ? writeString(to, value) : write(to, known);
  } else if (preparedObjects.has(value as object)) {
    yield* write(to, preparedObjects.get(value as object));
  } else if (Array.isArray(value)) {
    yield* writeList(to, value);
  } else {
    let before = '{';
    for (const [name, member] of Object.entries(value as object)) {
      if (member === undefined) continue;
      to.add(`${before}${JSON.stringify(name)}:`);
      before = ',';
      yield* write(to, member);
    }
    to.add(before === '{' ? '{}' : '}');
  }
}

/** Writes short items together: ten thousand of them one by one would take three times as long. */
function* writeList(to: PieceText, items: readonly unknown[]): Generator<Uint8Array> {
  to.add('[');
  for (let from = 0; from < items.length; ) {
    if (from > 0) to.add(',');
    let end = from;
    for (let room = MAX_PIECE_CHARS; end < items.length; end++) {
      room = roomAfter(items[end], room);
      if (room < 0) break;
    }
    if (end === from) yield* write(to, items[end++]);
    else {
      to.add(JSON.stringify(items.slice(from, end)).slice(1, -1)); // without the brackets
      if (to.isFull) yield to.take();
    }
    from = end;
  }
  to.add(']');
}

function* writeString(to: PieceText, text: string): Generator<Buffer> {
  to.add('"');
  for (let from = 0; from < text.length; ) {
    const end = placeToCut(text, from + MAX_PIECE_CHARS);
    to.add(JSON.stringify(cutText(text, from, end)).slice(1, -1)); // without the quotes
    if (to.isFull) yield to.take();
    from = end;
  }
  to.add('"');
}
