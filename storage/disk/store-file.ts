/**
 * Checks LMDB's data file by reading it, before it is mapped into memory. A missing page of a mapped file, or a tree
 * that leads in a circle, would end the process (SIGBUS).
 *
 * The layout is that of LMDB 1.0 on 64-bit little-endian machines. `data.mdb` consists of pages. A
 * page has a header of 24 bytes (page number, transaction, flags, bounds). After it a meta page has
 * its fields, a branch or a leaf has the offsets of its nodes, and an overflow page has the bytes
 * of one value.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

export const HEADER_BYTES = 24;
export const NODE_HEADER_BYTES = 8;
const META_BYTES = 168;
const MAGIC = 0xbeefc0de;
export const PAGE = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08 } as const;
export const BIG_DATA = 0x01;
/** The root of an empty tree. */
export const NO_PAGE = 0xffff_ffff_ffff_ffffn;
export const MAX_DEPTH = 64;

/** One meta page: a consistent state of the store. */
export interface Meta {
  readonly pageSize: number;
  readonly lastPage: number;
  readonly transaction: bigint;
  readonly roots: readonly bigint[];
}

/** The findings of a walk over the pages. */
export interface PageReport {
  readonly pages: number;
  /** The faults, in words; empty when every page is sound. */
  readonly damage: readonly string[];
}

/** Pages that replace pages of the file, and the resulting state. */
export interface PageOverlay {
  readonly meta: Meta;
  readonly sizeBytes: number;
  /** Returns undefined for a page that is in the file. */
  read(page: number): Buffer | undefined;
}

const MAX_DAMAGE_LINES = 20;

/** The data file, opened for reading. */
export class StoreFile implements Disposable {
  readonly #descriptor: number;

  private constructor(descriptor: number) {
    this.#descriptor = descriptor;
  }

  /** Throws the error of the system when the file cannot be read. */
  static open(path: string): StoreFile {
    return new StoreFile(openSync(path, 'r'));
  }

  get sizeBytes(): number {
    return fstatSync(this.#descriptor).size;
  }

  /** Returns the newest state, or undefined when the file is not a store or its head is damaged. */
  meta(): Meta | undefined {
    const first = this.#metaAt(0);
    // If the first head is damaged, the second one is expected at the usual page size.
    const size = first?.pageSize ?? 4096;
    const second = this.#metaAt(size);
    if (first === undefined || second === undefined) return undefined;
    return second.transaction > first.transaction ? second : first;
  }

  /**
   * Returns whether the file has every page that it could have. A shorter file may still be
   * complete, because free pages at its end are never written; `walk` finds that out.
   */
  isComplete(): boolean {
    const meta = this.meta();
    return meta !== undefined && (meta.lastPage + 1) * meta.pageSize <= this.sizeBytes;
  }

  /**
   * Visits every page that is in use in the newest state, and reports missing and malformed pages. With `overlay`, the
   * state is that of the overlay. `onRecord` gets the bytes of every record, and the number of the page that lists it.
   */
  walk(overlay?: PageOverlay, onRecord?: (bytes: Buffer, page: number) => void): PageReport {
    const meta = overlay?.meta ?? this.meta();
    if (meta === undefined) return { pages: 0, damage: ['its head is not that of a store'] };
    const read = (page: number) => overlay?.read(page) ?? this.#read(page * meta.pageSize, meta.pageSize);
    const walk = new PageWalk(meta, overlay?.sizeBytes ?? this.sizeBytes, read);
    const [free, main] = meta.roots;
    if (free !== undefined && free !== NO_PAGE) walk.visit(Number(free), 0);
    walk.onRecord = onRecord;
    if (main !== undefined && main !== NO_PAGE) walk.visit(Number(main), 0);
    return walk.report();
  }

  #metaAt(offset: number): Meta | undefined {
    const page = this.#read(offset, META_BYTES);
    return page && metaOf(page);
  }

  #read(offset: number, length: number): Buffer | undefined {
    const bytes = Buffer.allocUnsafe(length);
    return readSync(this.#descriptor, bytes, 0, length, offset) === length ? bytes : undefined;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** Returns the state that a meta page names; undefined when it is not one. */
export function metaOf(page: Buffer): Meta | undefined {
  if ((page.readUInt16LE(18) & PAGE.meta) === 0 || page.readUInt32LE(HEADER_BYTES) !== MAGIC)
    return undefined;
  const pageSize = page.readUInt32LE(48);
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) return undefined;
  return {
    pageSize,
    lastPage: Number(page.readBigUInt64LE(144)),
    transaction: page.readBigUInt64LE(152),
    roots: [page.readBigUInt64LE(88), page.readBigUInt64LE(136)],
  };
}

/**
 * One visit of all pages. It always ends, because a page that is reached twice counts as damage and
 * is not visited again.
 */
class PageWalk {
  readonly #meta: Meta;
  readonly #filePages: number;
  readonly #read: (page: number) => Buffer | undefined;
  readonly #seen = new Set<number>();
  readonly #damage: string[] = [];
  #missing = 0;
  #pages = 0;
  onRecord: ((bytes: Buffer, page: number) => void) | undefined;

  constructor(meta: Meta, sizeBytes: number, read: (page: number) => Buffer | undefined) {
    this.#meta = meta;
    this.#filePages = Math.floor(sizeBytes / meta.pageSize);
    this.#read = read;
  }

  /**
   * `newest` is the transaction of the page that leads here. LMDB writes that page anew whenever it
   * writes this one.
   */
  visit(number: number, depth: number, newest = this.#meta.transaction): void {
    const page = this.#take(number);
    if (page === undefined) return;
    const flags = page.readUInt16LE(18);
    const transaction = page.readBigUInt64LE(8);
    if (Number(page.readBigUInt64LE(0)) !== number) this.#note(`page ${number} has another number`);
    else if (transaction > newest) this.#note(`page ${number} is newer than the page that leads to it`);
    else if (depth > MAX_DEPTH) this.#note(`page ${number} is too deep`);
    else if ((flags & PAGE.branch) !== 0) {
      this.#eachNode(page, number, (at) => this.visit(childPageOf(page, at), depth + 1, transaction));
    } else if ((flags & PAGE.leaf) !== 0) {
      this.#eachNode(page, number, (at) => this.#visitValue(page, at, number));
    } else this.#note(`page ${number} is neither a branch nor a leaf`);
  }

  report(): PageReport {
    const damage = [...this.#damage];
    if (this.#missing > 0)
      damage.unshift(`the file is cut short: ${this.#missing} pages are missing at its end`);
    return { pages: this.#pages, damage: damage.slice(0, MAX_DAMAGE_LINES) };
  }

  #visitValue(page: Buffer, at: number, number: number): void {
    const data = at + NODE_HEADER_BYTES + page.readUInt16LE(at + 6);
    const bytes = page.readUInt32LE(at);
    if ((page.readUInt16LE(at + 4) & BIG_DATA) === 0) {
      this.onRecord?.(page.subarray(data, data + bytes), number);
      return;
    }
    if (data + 24 > this.#meta.pageSize) {
      this.#note(`page ${number} has a node beyond its end`);
      return;
    }
    const first = Number(page.readBigUInt64LE(data));
    const count = Number(page.readBigUInt64LE(data + 16));
    const head = this.#take(first, count);
    if (head === undefined) return;
    const isSound =
      (head.readUInt16LE(18) & PAGE.overflow) !== 0 && Number(head.readBigUInt64LE(0)) === first;
    if (!isSound) this.#note(`page ${first} does not hold the value that page ${number} expects there`);
    else if (this.onRecord !== undefined) {
      const rest = Array.from({ length: count - 1 }, (_, n) => this.#read(first + 1 + n) ?? Buffer.alloc(0));
      this.onRecord(Buffer.concat([head, ...rest]).subarray(HEADER_BYTES, HEADER_BYTES + bytes), number);
    }
  }

  #eachNode(page: Buffer, number: number, visit: (at: number) => void): void {
    const count = page.readUInt16LE(20) >> 1;
    if (HEADER_BYTES + count * 2 > this.#meta.pageSize) {
      this.#note(`page ${number} has a damaged head`);
      return;
    }
    for (let i = 0; i < count; i++) {
      const at = HEADER_BYTES + page.readUInt16LE(HEADER_BYTES + i * 2);
      if (at + NODE_HEADER_BYTES <= this.#meta.pageSize) visit(at);
      else this.#note(`page ${number} has a node beyond its end`);
    }
  }

  /** Returns the first of `count` pages, or undefined when they are missing or were visited before. */
  #take(number: number, count = 1): Buffer | undefined {
    if (number > this.#meta.lastPage || number + count - 1 > this.#meta.lastPage) {
      this.#note(`page ${number} lies outside of the store`);
      return undefined;
    }
    if (this.#seen.has(number)) {
      this.#note(`page ${number} is used twice`);
      return undefined;
    }
    this.#seen.add(number);
    this.#pages += count;
    if (number + count > this.#filePages) {
      this.#missing += Math.min(count, number + count - this.#filePages);
      return undefined;
    }
    return this.#read(number);
  }

  #note(damage: string): void {
    if (this.#damage.length < MAX_DAMAGE_LINES) this.#damage.push(damage);
  }
}

/** Returns the number of the page that a node of a branch leads to. */
export function childPageOf(page: Buffer, at: number): number {
  return page.readUInt32LE(at) + page.readUInt16LE(at + 4) * 2 ** 32;
}
