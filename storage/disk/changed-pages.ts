/**
 * The pages of a store that have changed since an earlier transaction, read from LMDB's data file while the store is used.
 *
 * LMDB never changes a committed page: a write copies the page, and those above it up to the root, and gives the
 * copies the number of its transaction (`mp_txnid` in the head of a page). So a page with the number of an earlier
 * transaction has not changed since, nor has any page below it. A walk from the root that turns back at such pages
 * visits the changed pages and their direct children. A copy of the earlier state with these pages written over it is
 * the later state, with its list of free pages.
 *
 * A reader must keep LMDB from using the pages again meanwhile (`Store.holdState`).
 */
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import {
  BIG_DATA,
  childPageOf,
  HEADER_BYTES,
  MAX_DEPTH,
  type Meta,
  NO_PAGE,
  NODE_HEADER_BYTES,
  PAGE,
  StoreFile,
} from './store-file.ts';
import { DATA_FILE } from './store-folder.ts';

/** Consecutive pages. */
export interface PageRun {
  readonly page: number;
  readonly bytes: Buffer;
}

/** How much is read at once. */
const MAX_READ_BYTES = 256 * 1024;
/** The head may be read while a commit writes it. */
const MAX_HEAD_READS = 100;

export class ChangedPages implements AsyncDisposable {
  /** The state that is read. */
  readonly meta: Meta;
  readonly #file: FileHandle;
  readonly #head: PageRun;

  private constructor(file: FileHandle, meta: Meta, head: PageRun) {
    this.#file = file;
    this.meta = meta;
    this.#head = head;
  }

  /**
   * Opens the newest state of the store in the directory `path`. The state must already be held.
   * Rejects when there is none.
   */
  static async open(path: string): Promise<ChangedPages> {
    const name = join(path, DATA_FILE);
    const file = await open(name, 'r');
    try {
      for (let n = 0; n < MAX_HEAD_READS; n++) {
        using store = StoreFile.open(name);
        const before = store.meta();
        if (before === undefined) continue;
        // LMDB writes the two heads alternately.
        const page = Number(before.transaction & 1n);
        const bytes = await readFully(file, page * before.pageSize, before.pageSize);
        const after = store.meta();
        if (after?.transaction === before.transaction && bytes.readBigUInt64LE(152) === before.transaction)
          return new ChangedPages(file, before, { page, bytes });
      }
      throw new Error(`The head of the store at ${path} cannot be read.`);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /**
   * Yields every page that was written after the transaction `since`, and the head as the last. Throws when the pages
   * do not belong to the opened state.
   */
  async *since(since: bigint): AsyncGenerator<PageRun> {
    if (this.meta.transaction === since) return;
    const roots = this.meta.roots.filter((root) => root !== NO_PAGE).map(Number);
    yield* this.#walk(roots, since, 0);
    yield this.#head;
  }

  async *#walk(pages: readonly number[], since: bigint, depth: number): AsyncGenerator<PageRun> {
    if (depth > MAX_DEPTH) throw new Error('The store has a page that is too deep.');
    for await (const run of this.#changedAmong(pages, since)) {
      yield run;
      const page = run.bytes;
      const isBranch = (page.readUInt16LE(18) & PAGE.branch) !== 0;
      if (isBranch) yield* this.#walk(childrenOf(page), since, depth + 1);
      else yield* this.#largeValues(page, since);
    }
  }

  /**
   * Yields those among the pages that have changed, one by one. Neighbouring pages are read at
   * once.
   */
  async *#changedAmong(pages: readonly number[], since: bigint): AsyncGenerator<PageRun> {
    const { pageSize } = this.meta;
    const sorted = pages.toSorted((a, b) => a - b);
    for (let from = 0; from < sorted.length; ) {
      const first = sorted[from]!;
      let to = from + 1;
      while (sorted[to] === first + to - from && (to - from) * pageSize < MAX_READ_BYTES) to++;
      const bytes = await this.#read(first, to - from);
      for (let n = 0; n < to - from; n++) {
        const page = bytes.subarray(n * pageSize, (n + 1) * pageSize);
        if (this.#isChanged(page, first + n, since)) yield { page: first + n, bytes: page };
      }
      from = to;
    }
  }

  async *#largeValues(leaf: Buffer, since: bigint): AsyncGenerator<PageRun> {
    const { pageSize } = this.meta;
    const most = MAX_READ_BYTES / pageSize;
    for (const { first, count } of largeValuesOf(leaf)) {
      const head = await this.#read(first, 1);
      if (!this.#isChanged(head, first, since)) continue;
      for (let at = 0; at < count; at += most)
        yield { page: first + at, bytes: await this.#read(first + at, Math.min(most, count - at)) };
    }
  }

  #isChanged(page: Buffer, number: number, since: bigint): boolean {
    const transaction = page.readBigUInt64LE(8);
    if (Number(page.readBigUInt64LE(0)) !== number || transaction > this.meta.transaction)
      throw new Error(`Page ${number} of the store is not a page of transaction ${this.meta.transaction}.`);
    return transaction > since;
  }

  #read(page: number, count: number): Promise<Buffer> {
    const { pageSize } = this.meta;
    return readFully(this.#file, page * pageSize, count * pageSize);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }
}

async function readFully(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(bytes, 0, length, position);
  if (bytesRead === length) return bytes;
  throw new Error(`The store ends at ${position + bytesRead} bytes, within a page that it uses.`);
}

function childrenOf(branch: Buffer): number[] {
  return nodesOf(branch).map((at) => childPageOf(branch, at));
}

/** Returns the places of the values that have separate pages. */
function largeValuesOf(leaf: Buffer): { first: number; count: number }[] {
  return nodesOf(leaf)
    .filter((at) => (leaf.readUInt16LE(at + 4) & BIG_DATA) !== 0)
    .map((at) => {
      const data = at + NODE_HEADER_BYTES + leaf.readUInt16LE(at + 6);
      return { first: Number(leaf.readBigUInt64LE(data)), count: Number(leaf.readBigUInt64LE(data + 16)) };
    });
}

/** Returns the offsets of a page's nodes. */
function nodesOf(page: Buffer): number[] {
  const count = page.readUInt16LE(20) >> 1;
  return Array.from({ length: count }, (_, n) => HEADER_BYTES + page.readUInt16LE(HEADER_BYTES + n * 2));
}
