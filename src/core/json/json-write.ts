/** Writes large JSON in pieces: `JSON.stringify` of megabytes in one takes longer than a server may stand still. */

import { isHighSurrogate } from '../utf8.ts';

/** A value whose JSON is about this long, or shorter, is written at once. */
const MAX_PIECE_CHARS = 32 * 1024;
/** What a value counts in addition to its characters. */
const VALUE_CHARS = 8;

/** Returns whether the JSON of a value is short enough to be written at once. */
export function isShortJson(value: unknown, maxChars = MAX_PIECE_CHARS): boolean {
  return roomAfter(value, maxChars) >= 0;
}

/** Returns what of `room` the value leaves; a negative number when it does not fit. */
function roomAfter(value: unknown, room: number): number {
  if (typeof value === 'string') return room - value.length - VALUE_CHARS;
  if (typeof value !== 'object' || value === null) return room - VALUE_CHARS;
  let rest = room - VALUE_CHARS;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && rest >= 0; i++) rest = roomAfter(value[i], rest);
    return rest;
  }
  for (const name in value) {
    rest = roomAfter((value as Readonly<Record<string, unknown>>)[name], rest - name.length);
    if (rest < 0) return rest;
  }
  return rest;
}

/**
 * Returns the JSON of plain data in pieces, in steps of up to a millisecond: what `JSON.stringify` returns, as UTF-8. The value
 * must not change meanwhile.
 */
export function* writeJson(value: unknown): Generator<undefined, Buffer[]> {
  const pieces = new Pieces();
  yield* write(pieces, value);
  return pieces.end();
}

class Pieces {
  readonly #done: Buffer[] = [];
  #text = '';

  /** Returns whether enough was added for one step. */
  add(text: string): boolean {
    this.#text += text;
    if (this.#text.length < MAX_PIECE_CHARS) return false;
    this.#done.push(Buffer.from(this.#text));
    this.#text = '';
    return true;
  }

  end(): Buffer[] {
    if (this.#text !== '') this.#done.push(Buffer.from(this.#text));
    return this.#done;
  }
}

function* write(to: Pieces, value: unknown): Generator<undefined> {
  if (isShortJson(value)) {
    if (to.add(JSON.stringify(value) ?? 'null')) yield;
  } else if (typeof value === 'string') yield* writeString(to, value);
  else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      to.add(index === 0 ? '[' : ',');
      yield* write(to, item);
    }
    to.add(']');
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

function* writeString(to: Pieces, text: string): Generator<undefined> {
  to.add('"');
  for (let from = 0; from < text.length; ) {
    let end = from + MAX_PIECE_CHARS;
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++;
    if (to.add(JSON.stringify(text.slice(from, end)).slice(1, -1))) yield;
    from = end;
  }
  to.add('"');
}
