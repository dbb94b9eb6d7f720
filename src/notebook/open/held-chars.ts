/**
 * Limits the characters that a kernel can make this server hold for one notebook, because the kernel's process is not
 * trusted.
 */
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';

/** All outputs, consoles, errors and variables of a notebook together. */
export const MAX_HELD_CHARS = 256 * 2 ** 20;
/** The least memory of an object or a list, however short its JSON is. */
const CHARS_PER_OBJECT = 40;
/** The characters that JSON adds to a string, to a list or an object, and to the name of a member. */
const [QUOTES, BRACKETS, COLON] = [2, 2, 1];

/**
 * Counts how many characters are held under each key. A key is a text, or the object that holds the
 * characters.
 */
export class HeldChars {
  readonly #chars = new Map<string | object, number>();
  #total = 0;

  /** How many further characters may be held. */
  get room(): number {
    return MAX_HELD_CHARS - this.#total;
  }

  /** Records the characters that `key` holds now, in place of its earlier ones. */
  set(key: string | object, chars: number): void {
    this.#total += chars - (this.#chars.get(key) ?? 0);
    if (chars === 0) this.#chars.delete(key);
    else this.#chars.set(key, chars);
  }

  /**
   * Records the characters that `key` holds now, and returns true, if there is room for them. Otherwise `key` holds
   * nothing, and it returns false.
   */
  admit(key: string, chars: number): boolean {
    this.set(key, 0);
    if (chars > this.room) return false;
    this.set(key, chars);
    return true;
  }
}

/** Returns the number of characters that an output counts as: its data, its text form and its table. */
export function charsOf({ data, text, table }: CellOutput): number {
  return charsOfValue(data) + (text?.length ?? 0) + (table === undefined ? 0 : charsOfValue(table));
}

/**
 * Returns how many characters a JSON value counts as. A string counts as its length. Any other value counts as the length of its
 * JSON without escapes, plus a fixed number for each object and list in it. No JSON is made, because a page may send texts of
 * megabytes.
 */
export function charsOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length;
  let chars = 0;
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') chars += next.length + QUOTES;
    else if (Array.isArray(next)) {
      chars += CHARS_PER_OBJECT + BRACKETS + Math.max(0, next.length - 1);
      for (const item of next) open.push(item);
    } else if (typeof next === 'object' && next !== null) {
      let members = 0;
      for (const [name, member] of Object.entries(next)) {
        if (member === undefined) continue;
        members++;
        chars += name.length + QUOTES + COLON;
        open.push(member);
      }
      chars += CHARS_PER_OBJECT + BRACKETS + Math.max(0, members - 1);
    } else chars += String(next).length;
  }
  return chars;
}
