/**
 * The part of lmdb-js that the store uses, over the disk of the world.
 *
 * A commit takes a drawn time until it is on the disk; only then readers see it, and a while later its promise resolves. A crash in
 * between leaves a prefix of the commits that were under way.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { judgeHomes } from '../judges/homes.ts';
import { type Life, world } from '../world/world.ts';
import { type Disk, diskOf, textOf, type Writes } from './disk.ts';

type Key = readonly (string | Uint8Array)[];

interface Range {
  readonly start?: Key;
  readonly end?: Key;
  readonly reverse?: boolean;
  readonly limit?: number;
  readonly exclusiveStart?: boolean;
}

/** The time from the flush of a commit until its process learns of it. */
const NEWS_MS = 0.3;
const SLOW_FLUSH_MS = 200;

class SimulatedDatabase {
  /** The length of the value that was read last. */
  lastSize = 0;
  readonly #disk: Disk;
  readonly #life: Life = world().life;
  #writes: Writes | undefined;
  #isClosed = false;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  get(key: Key): Buffer | undefined {
    this.#requireOpen();
    return this.#disk.get(textOf(key));
  }

  getBinary(key: Key): Buffer | undefined {
    return this.get(key);
  }

  getBinaryFast(key: Key): Buffer | undefined {
    const value = this.get(key);
    this.lastSize = value?.length ?? 0;
    return value;
  }

  doesExist(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  put(key: Key, bytes: Uint8Array): Promise<boolean> {
    this.#writes?.set(textOf(key), Buffer.from(bytes));
    return SUCCESS;
  }

  remove(key: Key): Promise<boolean> {
    this.#writes?.set(textOf(key), undefined);
    return SUCCESS;
  }

  batch(act: () => void): Promise<boolean> {
    if (this.#life.isOver) return NEVER; // the process was killed within this turn
    this.#requireOpen();
    return this.#commit(this.#gather(act));
  }

  transaction(act: () => void): Promise<boolean> {
    this.#requireOpen();
    const [flushMs, newsMs] = this.#durations();
    return this.#disk.decide(() => this.#gather(act), this.#life, flushMs, newsMs);
  }

  *getRange(range: Range = {}): Generator<{ key: string[]; value: Buffer }> {
    for (const text of this.#within(range)) {
      const value = this.#disk.get(text);
      if (value !== undefined) yield { key: text.split('\0'), value };
    }
  }

  *getKeys(range: Range = {}): Generator<string[]> {
    for (const text of this.#within(range)) yield text.split('\0');
  }

  getKeysCount(range: Range = {}): number {
    let count = 0;
    for (const _ of this.#within(range)) count++;
    return count;
  }

  getStats(): object {
    return { pageSize: 4096, lastPageNumber: 100 };
  }

  resetReadTxn(): void {}

  readerCheck(): number {
    return 0;
  }

  useReadTransaction(): { done(): void } {
    return { done() {} };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  backup(): Promise<never> {
    return Promise.reject(new Error('A simulated store makes no backups.'));
  }

  #within({ start, end, reverse = false, limit = Number.POSITIVE_INFINITY, exclusiveStart = false }: Range) {
    this.#requireOpen();
    return this.#disk.keysBetween({
      start: start && textOf(start),
      end: end && textOf(end),
      reverse,
      limit,
      exclusiveStart,
    });
  }

  #gather(act: () => void): Writes {
    const writes: Writes = new Map();
    this.#writes = writes;
    try {
      act();
    } finally {
      this.#writes = undefined;
    }
    judgeHomes(writes.keys(), this.#life);
    return writes;
  }

  /** The flush is the disk's: it takes place, or not, whether or not its process lives to see it. */
  #commit(writes: Writes): Promise<boolean> {
    const [flushMs, newsMs] = this.#durations();
    return this.#disk.commit(writes, this.#life, flushMs, newsMs);
  }

  /** Draws the time of a flush, and the time until its process learns of it. */
  #durations(): [flushMs: number, newsMs: number] {
    const { ofDisk, nature } = world();
    const flushMs = ofDisk.is(nature.slowFlush)
      ? 10 + ofDisk.next() * (SLOW_FLUSH_MS - 10)
      : 0.1 + ofDisk.next() * nature.flushMs;
    return [flushMs, ofDisk.next() * NEWS_MS];
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error('The database is closed.');
  }
}

const SUCCESS = Promise.resolve(true);
const NEVER = new Promise<never>(() => undefined);

export function open({ path }: { readonly path: string }): SimulatedDatabase {
  for (const name of ['data.mdb', 'lock.mdb']) closeSync(openSync(join(path, name), 'a', 0o600)); // the server looks at these
  const disk = diskOf(world());
  disk.opened(world().life);
  return new SimulatedDatabase(disk);
}
