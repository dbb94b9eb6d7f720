/** What a kernel can make this server hold for one notebook, in characters. Its process is not trusted, so that has a limit. */
import type { CellOutput } from '#src/kernel/messages.ts';

/** All outputs, consoles, errors and variables of a notebook together. */
export const MAX_HELD_CHARS = 256 * 2 ** 20;
/** What an object or a list takes in memory at least, however short its JSON is. */
const CHARS_PER_OBJECT = 40;

/** Counts what is held under each key: a text, or the object that holds it. */
export class HeldChars {
  readonly #chars = new Map<string | object, number>();
  #total = 0;

  /** How much more may be held. */
  get room(): number {
    return MAX_HELD_CHARS - this.#total;
  }

  /** Notes what `key` holds now, in the place of what it held before. */
  set(key: string | object, chars: number): void {
    this.#total += chars - (this.#chars.get(key) ?? 0);
    if (chars === 0) this.#chars.delete(key);
    else this.#chars.set(key, chars);
  }

  /** Returns whether `key` may hold so much in the place of what it held before, and notes it then; else it holds nothing. */
  admit(key: string, chars: number): boolean {
    this.set(key, 0);
    if (chars > this.room) return false;
    this.set(key, chars);
    return true;
  }
}

/** Returns what an output counts as: its data, what it is as text, and its table. */
export function charsOf({ data, text, table }: CellOutput): number {
  return charsOfValue(data) + (text?.length ?? 0) + (table === undefined ? 0 : charsOfValue(table));
}

/** Returns what a value of JSON counts as: a string its length, others the length of their JSON and what their objects take. */
export function charsOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length;
  const json = JSON.stringify(value);
  let objects = 0;
  for (let at = 0; at < json.length; at++) {
    const code = json.charCodeAt(at);
    if (code === 0x5b || code === 0x7b) objects++; // [ or {
  }
  return json.length + objects * CHARS_PER_OBJECT;
}
