import { compactPart, compactText } from '#src/base/text/compact-text.ts';
import { cutText, placeAfter, placeToCut } from '#src/base/text/cut-text.ts';
import type { CellOutput } from '#src/confined/processes/kernel/messages.ts';
import { charsOf } from './held-chars.ts';

/** How many characters (UTF-16 code units) are kept at each end of a cell's console. */
export const MAX_CONSOLE_END_CHARS = 32 * 1024;
/**
 * How many entries are kept at each end. Even short texts are separate entries when they alternate
 * between channels.
 */
const MAX_END_ENTRIES = 1000;
/** The memory of an entry in addition to its text: most of it is a MIME type, which may have 255 characters. */
const ENTRY_CHARS = 256;
/**
 * A text is joined to the last entry until the entry has this many characters. Larger entries would be costly to cut, because
 * cutting copies.
 */
const MIN_JOINED_CHARS = 1024;
/** The most figures within a cell's printed text, and the most characters of all its figures. */
const MAX_MEDIA = 100;
const MAX_MEDIA_CHARS = 16 * 2 ** 20;

/**
 * The printed text of a cell, bounded: the beginning and the end are kept, the middle is only counted. Consecutive
 * texts of one channel are one entry. Figures, such as those of `plt.show()`, do not count as text: they have a limit
 * of their own, and keep their places between the texts.
 */
export class ConsoleTail {
  readonly #head: CellOutput[] = [];
  #tail: CellOutput[] = [];
  /**
   * Entries at the beginning of the tail that are dropped already. They are removed when they are
   * half of the tail.
   */
  #gone = 0;
  #headSize = 0;
  #tailSize = 0;
  #omitted = 0;
  #mediaCount = 0;
  #mediaSize = 0;
  #omittedMedia = 0;

  readonly #endLimit: number;

  constructor(endLimit: number = MAX_CONSOLE_END_CHARS) {
    this.#endLimit = endLimit;
  }

  get isEmpty(): boolean {
    return this.#head.length === 0 && this.#tail.length === 0;
  }

  /** Characters that were left out. */
  get omitted(): number {
    this.#trim();
    return this.#omitted;
  }

  /** Figures that were left out. */
  get omittedMedia(): number {
    return this.#omittedMedia;
  }

  /** The number of characters that the held entries count as. */
  get heldChars(): number {
    const entries = this.#head.length + this.#tailCount;
    return this.#headSize + this.#tailSize + this.#mediaSize + entries * ENTRY_CHARS;
  }

  /** The figures that are kept. */
  media(): CellOutput[] {
    return this.#mediaCount === 0 ? [] : [...this.#head, ...this.#tail.slice(this.#gone)].filter(isMedia);
  }

  /**
   * `room` is the number of further characters that may be held. An entry that does not fit is left
   * out.
   */
  add(entry: CellOutput, room = Number.POSITIVE_INFINITY): void {
    if (isMedia(entry)) {
      this.#addMedia(entry, room);
      return;
    }
    const size = charsOf(entry);
    if (Math.min(size, 2 * this.#endLimit) + ENTRY_CHARS > room) {
      this.#omitted += size;
      return;
    }
    const mayGrowHead = this.#mayGrowHead(entry);
    const headRoom = this.#endLimit - this.#headSize;
    if (mayGrowHead && size <= headRoom) {
      append(this.#head, entry, MIN_JOINED_CHARS);
      this.#headSize += size;
    } else if (mayGrowHead && headRoom > 0 && isText(entry)) {
      append(this.#head, { ...entry, data: compactPart(entry.data, 0, headRoom) }, MIN_JOINED_CHARS);
      this.#headSize = this.#endLimit;
      this.#keepLast(this.#endOf(entry, headRoom));
    } else this.#keepLast(isText(entry) ? this.#endOf(entry, 0) : entry);
  }

  entries(): CellOutput[] {
    this.#trim();
    const all: CellOutput[] = [];
    for (const entry of this.#head) append(all, entry);
    for (const entry of this.#tail.slice(this.#gone)) append(all, entry);
    return all;
  }

  /** Returns the text of the beginning and, after a gap, of the end. */
  ends(): [head: string, tail: string] {
    this.#trim();
    const text = (entries: readonly CellOutput[]) =>
      entries.map(({ data }) => (typeof data === 'string' ? data : '')).join('');
    return [text(this.#head), text(this.#tail.slice(this.#gone))];
  }

  get #tailCount(): number {
    return this.#tail.length - this.#gone;
  }

  #mayGrowHead(entry: CellOutput): boolean {
    if (this.#tailCount > 0) return false;
    return this.#head.length < MAX_END_ENTRIES || mayJoin(this.#head.at(-1), entry);
  }

  /**
   * Returns the entry with its text from `start` on. If that text is longer than the tail may be, returns only the end of it.
   */
  #endOf(entry: TextEntry, start: number): TextEntry {
    const from = placeToCut(entry.data, start);
    const first = placeAfter(entry.data, Math.max(from, entry.data.length - this.#endLimit));
    this.#omitted += first - from;
    return first === 0 ? entry : { ...entry, data: compactPart(entry.data, first) };
  }

  #addMedia(entry: CellOutput, room: number): void {
    const size = charsOf(entry);
    const isTooLarge = this.#mediaSize + size > MAX_MEDIA_CHARS || size + ENTRY_CHARS > room;
    if (this.#mediaCount >= MAX_MEDIA || isTooLarge) {
      this.#omittedMedia++;
      return;
    }
    this.#mediaCount++;
    this.#mediaSize += size;
    if (this.#tailCount === 0) this.#head.push(entry);
    else this.#tail.push(entry);
  }

  #keepLast(entry: CellOutput): void {
    append(this.#tail, entry, MIN_JOINED_CHARS, this.#gone);
    this.#tailSize += charsOf(entry);
    // Trimming copies the first entry, so not every printed text is followed by a trimming. In between, a little more than the
    // limit is held.
    if (this.#tailSize > this.#endLimit + MIN_JOINED_CHARS || this.#tailCount > MAX_END_ENTRIES) this.#trim();
  }

  #trim(): void {
    while (this.#tailSize > this.#endLimit || this.#tailCount > MAX_END_ENTRIES) this.#dropFirst();
    if (this.#gone > this.#tail.length / 2) {
      this.#tail = this.#tail.slice(this.#gone);
      this.#gone = 0;
    }
  }

  /**
   * Drops the first entry of the tail, or only as much of its text as necessary. A figure moves to
   * the head instead.
   */
  #dropFirst(): void {
    const first = this.#tail[this.#gone]!;
    const size = charsOf(first);
    const excess = this.#tailSize - this.#endLimit;
    if (isMedia(first)) {
      this.#head.push(first);
      this.#gone++;
    } else if (isText(first) && excess > 0 && size > excess) {
      const gone = placeAfter(first.data, excess);
      this.#tail[this.#gone] = { ...first, data: cutText(first.data, gone) };
      this.#drop(gone);
    } else {
      this.#gone++;
      this.#drop(size);
    }
  }

  #drop(size: number): void {
    this.#tailSize -= size;
    this.#omitted += size;
  }
}

/** An entry that is not text; its channel is `media`. Notebook code can give it any MIME type. */
function isMedia(entry: CellOutput): boolean {
  return entry.channel === 'media';
}

type TextEntry = CellOutput & { readonly data: string };

/** Returns whether an entry is printed text and nothing else. */
function isText(entry: CellOutput): entry is TextEntry {
  const { mimetype, data, text, table } = entry;
  return mimetype === 'text/plain' && typeof data === 'string' && text === undefined && table === undefined;
}

function mayJoin(last: CellOutput | undefined, entry: CellOutput): last is TextEntry {
  return last !== undefined && last.channel === entry.channel && isText(last) && isText(entry);
}

/**
 * Appends an entry to the list. Joins its text to the last entry instead, if the kinds of both allow that and the last entry has
 * less than `joinedChars`. Entries before the index `from` were dropped, so nothing is joined to them.
 */
function append(
  list: CellOutput[],
  entry: CellOutput,
  joinedChars = Number.POSITIVE_INFINITY,
  from = 0,
): void {
  const last = list.length > from ? list[list.length - 1] : undefined;
  if (mayJoin(last, entry) && isText(entry) && last.data.length < joinedChars) {
    const { channel, mimetype, timestamp } = last;
    const joined = last.data + entry.data;
    const data = joined.length < joinedChars ? joined : compactText(joined);
    list[list.length - 1] = { channel, mimetype, data, timestamp };
  } else list.push(entry);
}
