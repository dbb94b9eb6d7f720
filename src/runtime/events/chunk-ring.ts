import { invariant } from '#src/base/errors/invariant.ts';

/** Some frames of a stream, encoded once for all subscribers. */
export interface Chunk {
  readonly bytes: Uint8Array;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Bytes of the stream before this chunk. */
  readonly start: number;
}

/**
 * The approximate memory of a chunk in addition to its bytes. Most chunks have one token of an answer, and so are smaller than
 * this overhead.
 */
const CHUNK_OVERHEAD = 200;

/** The latest chunks of a stream. A chunk's index counts from the beginning of the stream, so one number names a position. */
export class ChunkRing {
  #chunks: Chunk[] = [];
  #firstIndex: number;
  #end = 0;
  #lastSeq = 0;

  /** `firstIndex` is above 0 when another ring has the earlier chunks. */
  constructor(firstIndex = 0) {
    this.#firstIndex = firstIndex;
  }

  /** The index that the next chunk will have. */
  get nextIndex(): number {
    return this.#firstIndex + this.#chunks.length;
  }

  /** The approximate memory of all chunks. */
  get heldBytes(): number {
    return this.#end - (this.#chunks[0]?.start ?? this.#end) + this.#chunks.length * CHUNK_OVERHEAD;
  }

  /** Adds a chunk. The sequence numbers are needed only in rings in which chunks are looked up by these numbers. */
  push(bytes: Uint8Array, firstSeq = 0, lastSeq = 0): void {
    invariant(firstSeq === 0 || firstSeq > this.#lastSeq, 'The ids of the events of a stream grow.');
    this.#chunks.push({ bytes, firstSeq, lastSeq, start: this.#end });
    this.#end += bytes.byteLength;
    this.#lastSeq = lastSeq;
  }

  at(index: number): Chunk {
    return this.#chunks[index - this.#firstIndex]!;
  }

  /** Returns the number of bytes from this chunk to the end. */
  bytesFrom(index: number): number {
    return index >= this.nextIndex ? 0 : this.#end - this.at(index).start;
  }

  /**
   * Returns the index of the chunk that has, or will have, the frame after `seq`; undefined when that chunk was dropped.
   */
  indexAfter(seq: number): number | undefined {
    if (seq === this.#lastSeq) return this.nextIndex;
    const first = this.#chunks[0];
    if (first === undefined || seq < first.firstSeq - 1 || seq > this.#lastSeq) return undefined;
    return this.#firstIndex + this.#chunks.findIndex((chunk) => chunk.lastSeq > seq);
  }

  /** Drops chunks before `index`, except the latest ones, up to `windowBytes` of memory. */
  trim(index: number, windowBytes: number): void {
    let count = 0;
    while (count < this.#chunks.length && this.#firstIndex + count < index) {
      const after = this.#chunks[count + 1]?.start ?? this.#end;
      const chunksAfter = this.#chunks.length - count - 1;
      if (this.#end - after + chunksAfter * CHUNK_OVERHEAD < windowBytes) break;
      count++;
    }
    if (count === 0) return;
    this.#chunks.splice(0, count);
    this.#firstIndex += count;
  }
}
