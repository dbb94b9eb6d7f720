/** Reads the store of a backup with the pages of its increments over it, without a copy of either. */
import { closeSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { problemOf } from '#storage/codec.ts';
import { type Meta, metaOf, type PageOverlay, StoreFile } from '#storage/disk/store-file.ts';
import { type Chain, type Increment, PAGES_FILE } from './chain.ts';
import { RUN_HEAD_BYTES } from './increment.ts';

/**
 * The number of a file and an offset in it, as one number: a chain has far fewer increments than 2^11, and a file
 * fewer bytes than 2^42.
 */
const MAX_FILE_BYTES = 2 ** 42;
const MAX_PROBLEMS = 1_000;

/** Returns how many records the store has at the end of the chain, and its faults, one line each. */
export function checkOverlaid({ directory, increments }: Chain): { records: number; problems: string[] } {
  using overlay = new Overlay(increments);
  using file = StoreFile.open(join(directory, 'store', 'data.mdb'));
  const problems: string[] = [];
  let records = 0;
  const { damage } = file.walk(overlay, (bytes, page) => {
    records++;
    const problem = problemOf(bytes);
    if (problem !== undefined && problems.length < MAX_PROBLEMS)
      problems.push(`a record on page ${page}: ${problem}`);
  });
  return { records, problems: [...damage.map((line) => `store: ${line}`), ...problems] };
}

class Overlay implements PageOverlay, Disposable {
  readonly meta: Meta;
  readonly sizeBytes: number;
  readonly #descriptors: number[] = [];
  /** The place of the newest copy of each page, by the number of the page. */
  readonly #places = new Map<number, number>();
  readonly #pageBytes: number;

  /** There is at least one increment. */
  constructor(increments: readonly Increment[]) {
    const { pages, storeBytes, lineage } = increments.at(-1)!.manifest;
    this.#pageBytes = pages.pageBytes;
    this.sizeBytes = storeBytes;
    for (const increment of increments) this.#add(increment);
    const head = this.read(lineage.transaction % 2);
    const meta = head && metaOf(head);
    if (meta === undefined) throw new Error('The last increment has no head of a store.');
    this.meta = meta;
  }

  #add({ directory, manifest }: Increment): void {
    const descriptor = openSync(join(directory, PAGES_FILE), 'r');
    const place = this.#descriptors.push(descriptor) - 1;
    const head = Buffer.alloc(RUN_HEAD_BYTES);
    for (let at = 0; at < manifest.pages.bytes; ) {
      readSync(descriptor, head, 0, RUN_HEAD_BYTES, at);
      const first = Number(head.readBigUInt64LE(0));
      const length = head.readUInt32LE(8);
      at += RUN_HEAD_BYTES;
      for (let n = 0; n * this.#pageBytes < length; n++)
        this.#places.set(first + n, place * MAX_FILE_BYTES + at + n * this.#pageBytes);
      at += length;
    }
  }

  read(page: number): Buffer | undefined {
    const place = this.#places.get(page);
    if (place === undefined) return undefined;
    const bytes = Buffer.alloc(this.#pageBytes);
    const descriptor = this.#descriptors[Math.floor(place / MAX_FILE_BYTES)]!;
    readSync(descriptor, bytes, 0, bytes.length, place % MAX_FILE_BYTES);
    return bytes;
  }

  [Symbol.dispose](): void {
    for (const descriptor of this.#descriptors) closeSync(descriptor);
  }
}
