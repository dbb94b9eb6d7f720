import type { CellOutput } from '#src/kernel/messages.ts';

/** Bytes (UTF-16 code units, a lower bound) that are kept at each end of a cell's console. */
export const MAX_CONSOLE_END_CHARS = 32 * 1024;
/** How many figures a cell may show among what it prints, and how large they may be together. */
const MAX_MEDIA = 100;
const MAX_MEDIA_CHARS = 16 * 2 ** 20;

/**
 * What a cell printed, bounded: the beginning and the end are kept, the middle is only counted. Consecutive texts of
 * one channel are one entry. Figures, such as those of `plt.show()`, do not count as text: they have a limit of their own,
 * and stay where they are between the texts.
 */
export class ConsoleTail {
  readonly #head: CellOutput[] = [];
  #tail: CellOutput[] = [];
  /** Entries of the tail that are gone already; they are cut off a half at a time. */
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
    return this.#omitted;
  }

  /** Figures that were left out. */
  get omittedMedia(): number {
    return this.#omittedMedia;
  }

  /** Characters of the figures that are kept. */
  get mediaSize(): number {
    return this.#mediaSize;
  }

  /** The figures that are kept. */
  media(): CellOutput[] {
    return this.entries().filter(isMedia);
  }

  /** `mediaRoom`: how many characters of figures may be added. */
  add(entry: CellOutput, mediaRoom = Number.POSITIVE_INFINITY): void {
    if (isMedia(entry)) {
      this.#addMedia(entry, mediaRoom);
      return;
    }
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

  #addMedia(entry: CellOutput, room: number): void {
    const size = sizeOf(entry);
    if (this.#mediaCount >= MAX_MEDIA || this.#mediaSize + size > MAX_MEDIA_CHARS || size > room) {
      this.#omittedMedia++;
      return;
    }
    this.#mediaCount++;
    this.#mediaSize += size;
    if (this.#tailSize === 0) this.#head.push(entry);
    else this.#tail.push(entry);
  }

  #keepLast(entry: CellOutput): void {
    this.#tail.push(entry);
    this.#tailSize += sizeOf(entry);
    let excess = this.#tailSize - this.#endLimit;
    while (excess > 0) {
      const first = this.#tail[this.#gone]!;
      if (isMedia(first)) {
        this.#head.push(first);
        this.#gone++;
        continue;
      }
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

/** Anything shown that is not text: its channel is `media`. Notebook code can give it any MIME type. */
function isMedia(entry: CellOutput): boolean {
  return entry.channel === 'media';
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
