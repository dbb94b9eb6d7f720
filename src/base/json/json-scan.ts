/**
 * Scans the bytes of JSON that was received before anything is parsed. The scan finds excess: a few
 * megabytes of `[],[],…` would otherwise become gigabytes of heap, and deep nesting would overflow
 * the stack of recursive readers. It also finds the places at which large JSON can be divided, so
 * that it can be parsed in pieces. Invalid JSON is left to the parser.
 */
export interface JsonBounds {
  readonly maxDepth: number;
  readonly maxValues: number;
  /** How many members one object may have. Code that reads an object gets all its names at once. */
  readonly maxMembers: number;
  /** How many digits a number may have in a row. */
  readonly maxDigits: number;
  /** Whether a member's name may be long. A name cannot be parsed in pieces. */
  readonly mayHaveLargeNames: boolean;
}

/** The limit that the JSON exceeds. */
export type JsonExcess = 'depth' | 'values' | 'members' | 'digits' | 'name';

/** The most members of an object that is not trusted. Reading the names of so many takes some 30 milliseconds. */
export const MAX_MEMBERS = 30_000;

/** A value with more bytes is large. */
export const MAX_PIECE_BYTES = 64 * 1024;

/** A large value of the JSON, by its bytes from `start` to before `end`. */
export interface LargeValue {
  readonly start: number;
  readonly end: number;
  /**
   * The large members and the commas between members of an array or object, in order. Between two
   * of these commas there is either one large member, or several members that have together little
   * more bytes than a piece.
   */
  readonly parts: readonly (number | LargeValue)[];
}

const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** With this bit `[` becomes `{`, and `]` becomes `}`. */
const BRACE_BIT = 0x20;
const OPENING = 0x7b;
const CLOSING = 0x7d;

/** Most strings are shorter; in longer ones a native search is much faster. */
const SHORT_STRING_BYTES = 64;
/** How many bytes between strings, or quotes within them, one `advance` reads. */
const BYTES_AT_ONCE = 128 * 1024;
const QUOTES_AT_ONCE = 4096;

/** The state of an open container. */
interface Open {
  readonly start: number;
  /** The number of members so far, if the container is an object that is not empty. */
  members: number;
  /** The place of the last comma, or the start of the container. */
  comma: number;
  /** The position of the last comma between parts, or the start. */
  cut: number;
  /** Whether a large member came after `cut`. */
  hasLarge: boolean;
  parts: (number | LargeValue)[] | undefined;
}

export class JsonScan {
  readonly #json: Buffer;
  readonly #bounds: JsonBounds;
  #at = 0;
  /** The start of the string that is being read; -1 between strings. */
  #string = -1;
  #values = 0;
  #digits = 0;
  #excess: JsonExcess | undefined;
  #isUnbalanced = false;
  /** The open containers, from the outside in. The first one holds the whole text. */
  readonly #open: Open[] = [opened(-1, false)];

  constructor(json: Buffer, bounds: JsonBounds) {
    this.#json = json;
    this.#bounds = bounds;
  }

  /** The limit that was exceeded, once the end was reached. */
  get excess(): JsonExcess | undefined {
    return this.#excess ?? (this.#values > this.#bounds.maxValues ? 'values' : undefined);
  }

  /** Whether brackets or quotes do not match, so that the text is not JSON. */
  get isUnbalanced(): boolean {
    return this.#isUnbalanced || this.#open.length > 1 || this.#string !== -1;
  }

  /** The whole value and the large values in it; undefined when the whole value is not large. */
  get large(): LargeValue | undefined {
    const [part] = this.#open[0]?.parts ?? [];
    return typeof part === 'object' ? part : undefined;
  }

  /** Reads on for some hundred microseconds. Returns whether this was the end. */
  advance(): boolean {
    if (this.#string === -1) this.#readBetween();
    else this.#readString();
    return this.#excess !== undefined || this.#isUnbalanced || this.#at >= this.#json.length;
  }

  /** Reads until the start of a long string, or until this call has read enough. */
  #readBetween(): void {
    const json = this.#json;
    const { maxDigits, maxDepth } = this.#bounds;
    const end = Math.min(json.length, this.#at + BYTES_AT_ONCE);
    let digits = this.#digits;
    let i = this.#at;
    for (; i < end; i++) {
      const byte = json[i]!;
      if (byte >= ZERO && byte <= NINE) {
        if (++digits > maxDigits) {
          this.#excess = 'digits';
          return;
        }
        continue;
      }
      digits = 0;
      if (byte === QUOTE) {
        const nearEnd = Math.min(i + SHORT_STRING_BYTES, json.length);
        const start = i++;
        while (i < nearEnd && json[i] !== QUOTE) i += json[i] === BACKSLASH ? 2 : 1;
        if (i < nearEnd) continue;
        this.#string = start;
        break;
      }
      if (byte === COMMA) this.#takeComma(i);
      else if ((byte | BRACE_BIT) === OPENING) {
        this.#values++;
        if (this.#open.length > maxDepth) {
          this.#excess = 'depth';
          return;
        }
        this.#open.push(opened(i, byte === OPENING));
      } else if ((byte | BRACE_BIT) === CLOSING && !this.#close(i + 1)) return;
    }
    this.#at = i;
    this.#digits = digits;
  }

  /**
   * Reads on in a string, to its end or until this call has read enough. `#at` is not at an escaped
   * character.
   */
  #readString(): void {
    const json = this.#json;
    for (let quotes = 0; quotes < QUOTES_AT_ONCE; quotes++) {
      const quote = json.indexOf(QUOTE, this.#at);
      if (quote === -1) {
        this.#at = json.length;
        return;
      }
      let before = quote;
      while (before > this.#at && json[before - 1] === BACKSLASH) before--;
      const isEnd = (quote - before) % 2 === 0;
      this.#at = quote + 1;
      if (!isEnd) continue;
      const start = this.#string;
      this.#string = -1;
      if (quote + 1 - start > MAX_PIECE_BYTES) this.#addString(start, quote + 1);
      return;
    }
  }

  #addString(start: number, end: number): void {
    let next = end;
    while (next < this.#json.length && this.#json[next]! <= SPACE) next++;
    if (this.#json[next] !== COLON) this.#addLarge({ start, end, parts: [] });
    else if (!this.#bounds.mayHaveLargeNames) this.#excess = 'name';
  }

  #takeComma(at: number): void {
    this.#values++;
    const open = this.#open[this.#open.length - 1]!;
    open.comma = at;
    if (++open.members > this.#bounds.maxMembers) this.#excess = 'members';
    if (!open.hasLarge && at - open.cut <= MAX_PIECE_BYTES) return;
    open.parts ??= [];
    open.parts.push(at);
    open.cut = at;
    open.hasLarge = false;
  }

  #close(end: number): boolean {
    const { start, parts = [] } = this.#open.pop()!;
    this.#isUnbalanced = start === -1;
    if (this.#isUnbalanced) return false;
    if (end - start > MAX_PIECE_BYTES) this.#addLarge({ start, end, parts });
    return true;
  }

  #addLarge(value: LargeValue): void {
    const open = this.#open[this.#open.length - 1]!;
    open.parts ??= [];
    if (open.comma > open.cut) open.parts.push(open.comma);
    open.cut = open.comma;
    open.parts.push(value);
    open.hasLarge = true;
  }
}

function opened(at: number, isObject: boolean): Open {
  const members = isObject ? 1 : Number.NEGATIVE_INFINITY;
  return { start: at, members, comma: at, cut: at, hasLarge: false, parts: undefined };
}

/** Returns which bound the JSON exceeds, or undefined. Strings may have any size. */
export function findJsonExcess(json: Buffer, bounds: JsonBounds): JsonExcess | undefined {
  if (json.length <= MAX_PIECE_BYTES) return findShortExcess(json, bounds);
  const scan = new JsonScan(json, bounds);
  while (!scan.advance());
  return scan.excess;
}

/**
 * Returns the same as a `JsonScan`, for JSON that has no large value: most JSON is short, and only its brackets and commas count. So few
 * bytes cannot hold `MAX_MEMBERS` members, so members are not counted.
 */
function findShortExcess(
  json: Buffer,
  { maxDepth, maxValues, maxDigits }: JsonBounds,
): JsonExcess | undefined {
  let depth = 0;
  let values = 0;
  let digits = 0;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i]!;
    if (byte >= ZERO && byte <= NINE) {
      if (++digits > maxDigits) return 'digits';
      continue;
    }
    digits = 0;
    if (byte === QUOTE) {
      const nearEnd = Math.min(i + SHORT_STRING_BYTES, json.length);
      i++;
      while (i < nearEnd && json[i] !== QUOTE) i += json[i] === BACKSLASH ? 2 : 1;
      if (i >= nearEnd) i = endOfString(json, i);
    } else if (byte === COMMA) values++;
    else if ((byte | BRACE_BIT) === OPENING) {
      values++;
      if (++depth > maxDepth) return 'depth';
    } else if ((byte | BRACE_BIT) === CLOSING && --depth < 0) break;
  }
  return values > maxValues ? 'values' : undefined;
}

/** Returns the place of the quote that ends a string, or the end of the text. The character at `from` is not escaped. */
function endOfString(json: Buffer, from: number): number {
  for (let at = from; ; ) {
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return json.length;
    let before = quote;
    while (before > at && json[before - 1] === BACKSLASH) before--;
    if ((quote - before) % 2 === 0) return quote;
    at = quote + 1;
  }
}
