/**
 * A simulated disk with one file, whose power is cut. After the cut it has all flushed writes. Each other write may be there, be
 * missing, or be there with only some of its sectors, whatever became of the writes before it.
 */
import type { SeededRandom } from '#test/support/random.ts';
import type { LogEntry } from '#test/support/store/write-log.ts';

const SECTOR_BYTES = 512;
const BLOCK_BYTES = 4096;

/** How the disk treats the writes that were not flushed. */
export const LOSSES = [
  'none kept',
  'all kept',
  'all but one',
  'some',
  'some blocks',
  'some sectors',
] as const;
export type Loss = (typeof LOSSES)[number];

interface PendingWrite {
  /** The place of the entry in the log. */
  readonly place: number;
  readonly offset: number;
  readonly data: Buffer;
  readonly token: bigint;
}

export class CutDisk {
  readonly #entries: readonly LogEntry[];
  readonly #flushesLate: boolean;
  #next = 0;
  /** The content that is surely on the disk. */
  #bytes = Buffer.alloc(0);
  #sizeBytes = 0;
  #pending: PendingWrite[] = [];
  /** The places in the log at which flushes began, which have not ended. */
  readonly #flushing = new Map<bigint, number>();
  #flushedTo = 0;
  /** Whether the name of the file is surely on the disk. */
  #isNamed = false;

  /** A disk that `flushesLate` reports a flush at once, and carries it out with the next flush. */
  constructor(entries: readonly LogEntry[], { flushesLate = false } = {}) {
    this.#entries = entries;
    this.#flushesLate = flushesLate;
  }

  /** How many writes may be lost now. */
  get pendingWrites(): number {
    return this.#pending.length;
  }

  /** Carries the entries of the log out up to, without, the one at `place`. */
  advance(place: number): void {
    for (; this.#next < place; this.#next++) this.#carryOut(this.#entries[this.#next]!, this.#next);
  }

  /** Returns the file after a cut at this place; undefined when it does not exist. Keeps none of its bytes for itself. */
  cut(loss: Loss, random: SeededRandom): Buffer | undefined {
    if (!this.#isNamed && (loss === 'none kept' || random.is(0.25))) return undefined;
    const kept = this.#kept(loss, random);
    const end = Math.max(this.#sizeBytes, ...kept.map(({ offset, data }) => offset + data.length));
    const full = Math.max(this.#sizeBytes, ...this.#pending.map(({ offset, data }) => offset + data.length));
    // The size may be on the disk before the bytes are.
    const image = Buffer.alloc(loss === 'all kept' || random.is(0.5) ? end : full);
    this.#bytes.copy(image, 0, 0, this.#sizeBytes);
    for (const { offset, data } of kept) data.copy(image, offset);
    return image;
  }

  #kept(loss: Loss, random: SeededRandom): readonly Pick<PendingWrite, 'offset' | 'data'>[] {
    if (loss === 'none kept') return [];
    if (loss === 'all kept') return this.#pending;
    if (loss === 'all but one') {
      const lost = random.below(this.#pending.length);
      return this.#pending.filter((_, at) => at !== lost);
    }
    const parts =
      loss === 'some'
        ? this.#pending
        : partsOf(this.#pending, loss === 'some blocks' ? BLOCK_BYTES : SECTOR_BYTES);
    return shuffled(
      parts.filter(() => random.is(0.5)),
      random,
    );
  }

  #carryOut(entry: LogEntry, place: number): void {
    if (entry.kind === 'write') this.#pending.push({ ...entry, place });
    else if (entry.kind === 'written') this.#settlePage(entry.token);
    else if (entry.kind === 'flushing') this.#flushing.set(entry.token, place);
    else if (entry.kind === 'flush') this.#flush(entry.token);
    else if (entry.kind === 'folder') this.#isNamed = true;
    else if (entry.kind === 'size')
      throw new Error('The store sets the size of its file, which is not expected.');
  }

  #flush(token: bigint): void {
    const began = this.#flushing.get(token) ?? 0;
    this.#flushing.delete(token);
    const until = this.#flushesLate ? this.#flushedTo : began;
    this.#flushedTo = began;
    this.#settle(({ place }) => place < until);
  }

  /** A page of the file goes to the disk with all earlier writes to it. */
  #settlePage(token: bigint): void {
    const own = this.#pending.find((write) => write.token === token);
    if (own === undefined) return;
    const [first, last] = pagesOf(own);
    this.#settle((write) => {
      const [from, to] = pagesOf(write);
      return write.place <= own.place && from <= last && to >= first;
    });
  }

  #settle(isDone: (write: PendingWrite) => boolean): void {
    for (const write of this.#pending) if (isDone(write)) this.#put(write);
    this.#pending = this.#pending.filter((write) => !isDone(write));
  }

  #put({ offset, data }: PendingWrite): void {
    const end = offset + data.length;
    if (end > this.#bytes.length) {
      const larger = Buffer.alloc(Math.max(end, this.#bytes.length * 2));
      this.#bytes.copy(larger);
      this.#bytes = larger;
    }
    data.copy(this.#bytes, offset);
    this.#sizeBytes = Math.max(this.#sizeBytes, end);
  }
}

/** Returns the first and the last page that a write touches. */
function pagesOf({ offset, data }: PendingWrite): [number, number] {
  return [Math.floor(offset / BLOCK_BYTES), Math.floor((offset + data.length - 1) / BLOCK_BYTES)];
}

/** Cuts writes at the multiples of `size` in the file. */
function partsOf(writes: readonly PendingWrite[], size: number) {
  const parts: Pick<PendingWrite, 'offset' | 'data'>[] = [];
  for (const { offset, data } of writes) {
    for (let at = 0; at < data.length; ) {
      const length = Math.min(size - ((offset + at) % size), data.length - at);
      parts.push({ offset: offset + at, data: data.subarray(at, at + length) });
      at += length;
    }
  }
  return parts;
}

function shuffled<T>(items: readonly T[], random: SeededRandom): T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
