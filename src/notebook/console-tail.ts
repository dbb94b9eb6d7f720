import type { CellOutput } from '#src/kernel/messages.ts';

/** Bytes (UTF-16 code units, a lower bound) that are kept at each end of a cell's console. */
export const MAX_CONSOLE_END_CHARS = 32 * 1024;

/**
 * What a cell printed, bounded: the beginning and the end are kept, the middle is only counted. Consecutive texts of
 * one channel are one entry.
 */
export class ConsoleTail {
  readonly #head: CellOutput[] = [];
  #tail: CellOutput[] = [];
  /** Entries of the tail that are gone already; they are cut off a half at a time. */
  #gone = 0;
  #headSize = 0;
  #tailSize = 0;
  #omitted = 0;

  readonly #endLimit: number;

  constructor(endLimit: number = MAX_CONSOLE_END_CHARS) {
    this.#endLimit = endLimit;
  }

  get isEmpty(): boolean {
    return this.#head.length === 0 && this.#tailSize === 0;
  }

  /** Characters that were left out. */
  get omitted(): number {
    return this.#omitted;
  }

  add(entry: CellOutput): void {
    const size = sizeOf(entry);
    if (this.#headSize + size <= this.#endLimit && this.#tailSize === 0) {
      append(this.#head, entry);
      this.#headSize += size;
      return;
    }
    const room = this.#endLimit - this.#headSize;
    if (this.#tailSize === 0 && room > 0 && isText(entry)) {
      append(this.#head, { ...entry, data: entry.data.slice(0, room) });
      this.#headSize = this.#endLimit;
      this.#keepLast({ ...entry, data: entry.data.slice(room) });
      return;
    }
    this.#keepLast(entry);
  }

  entries(): CellOutput[] {
    const all: CellOutput[] = [];
    for (const entry of this.#head) append(all, entry);
    for (const entry of this.#tail.slice(this.#gone)) append(all, entry);
    return all;
  }

  /** Returns the text of the beginning and, after a gap, of the end. */
  ends(): [head: string, tail: string] {
    const text = (entries: readonly CellOutput[]) =>
      entries.map(({ data }) => (typeof data === 'string' ? data : '')).join('');
    return [text(this.#head), text(this.#tail.slice(this.#gone))];
  }

  #keepLast(entry: CellOutput): void {
    this.#tail.push(entry);
    this.#tailSize += sizeOf(entry);
    let excess = this.#tailSize - this.#endLimit;
    while (excess > 0) {
      const first = this.#tail[this.#gone]!;
      const size = sizeOf(first);
      if (isText(first) && size > excess) {
        this.#tail[this.#gone] = { ...first, data: first.data.slice(excess) };
        this.#drop(excess);
        break;
      }
      this.#gone++;
      excess -= size;
      this.#drop(size);
    }
    if (this.#gone > this.#tail.length / 2) {
      this.#tail = this.#tail.slice(this.#gone);
      this.#gone = 0;
    }
  }

  #drop(size: number): void {
    this.#tailSize -= size;
    this.#omitted += size;
  }
}

function isText(entry: CellOutput): entry is CellOutput & { data: string } {
  return entry.mimetype === 'text/plain' && typeof entry.data === 'string';
}

function sizeOf(entry: CellOutput): number {
  return typeof entry.data === 'string' ? entry.data.length : JSON.stringify(entry.data).length;
}

function append(list: CellOutput[], entry: CellOutput): void {
  const last = list[list.length - 1];
  if (last !== undefined && last.channel === entry.channel && isText(last) && isText(entry)) {
    list[list.length - 1] = { ...last, data: last.data + entry.data };
  } else {
    list.push(entry);
  }
}
