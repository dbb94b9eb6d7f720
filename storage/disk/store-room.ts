/**
 * The room that the store has to grow, and the handling of a full disk.
 *
 * A reserve is set aside after the end of LMDB's data file, where no other file can take it. While the disk has space
 * the reserve is kept whole. When it is not, the level is `full`: nothing new is accepted (the HTTP server responds
 * with 507), and the reserve has room for essential writes: ends of runs, cancellations, deletions. This state ends by
 * itself when there is space again, on the disk or, after deletions, within the data file.
 *
 * A commit begins only when the most space it can need is set aside, and waits until then; it is never dropped. LMDB
 * must not meet a full disk: lmdb-js writes its message about that beyond the end of a buffer, which ends the process
 * (SIGABRT). Where a file system cannot set space aside, the free space is checked, and a margin of it left.
 *
 * Workers of one server that commit to the same file share the reserve. Each worker sets the reserve aside, which
 * costs nothing when another one has done so. Each looks at the disk for itself. While the disk has space, a worker
 * uses at most its share of the reserve between two looks. When it has little, a worker looks before every commit and
 * leaves room for the commits of the others.
 */

import { closeSync, openSync, statfsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { unawaited } from '#src/base/async/unawaited.ts';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { descriptorOf } from '#src/base/os/descriptors.ts';
import { loadPreallocate, type Preallocate } from '#src/base/os/preallocate.ts';
import { isDiskFull } from '../commit-failure.ts';
import type { CommitRoom } from '../commit-queue.ts';
import type { Store } from '../store.ts';
import { DATA_FILE, LOCK_FILE } from './store-folder.ts';

/** How much room there is: enough, less than the watermark, or only the reserve. */
export type RoomLevel = 'ample' | 'low' | 'full';

export interface RoomState {
  readonly level: RoomLevel;
  /** Free bytes on the disk, for the server's user. */
  readonly freeBytes: number;
  /** Bytes set aside for the store. */
  readonly reservedBytes: number;
  /**
   * How many more files fit on the disk, when fewer than the limit for a warning do. Undefined while there is no
   * warning, and where the disk has no such limit.
   */
  readonly fewInodes: number | undefined;
  /** Whether a commit waits for space. */
  readonly stalled: boolean;
}

export interface StoreRoomOptions {
  readonly store: Store;
  /** The directory of the store. */
  readonly path: string;
  readonly reserveBytes: number;
  /** Less free space than this is `low`. */
  readonly warnBytes: number;
  /** How many processes commit to the store; 1 when absent. */
  readonly workers?: number | undefined;
  /** Called when the level changes, or when commits begin or cease to wait. */
  readonly onChange: (state: RoomState) => void;
}

/** With fewer free inodes than this there is a warning. A busy workspace makes hundreds of files in a minute. */
const WARN_INODES = 1000;
const LOOK_EVERY_MS = 1000;
/**
 * The interval between two looks at the disk while this worker does not write and the others are far from filling the
 * disk.
 */
const LOOK_SELDOM_MS = 10_000;
/** The free space that counts as far from filling the disk, as a multiple of the warning's limit. */
const PLENTY = 4;
/** Commits measure the disk again only after this time. */
const MIN_LOOK_MS = 100;
const RETRY_MS = 500;
/** A smaller reserve is topped up. */
const TOP_UP_BELOW = 0.75;
/** How much more than the reserve there must be before writes are accepted again, so that the level does not flutter. */
const RECOVERED = 1.25;
/**
 * When the disk has no room for a whole reserve, half of it is tried, then half of that, down to
 * this size.
 */
const MIN_RESERVE_BYTES = 1024 * 1024;
/**
 * The largest share of the disk that a reserve takes. Otherwise a reserve on a small disk would
 * leave nothing to other programs.
 */
const MAX_SHARE = 0.5;
/** The free space that other programs may take during a commit, where no space can be set aside. */
const MARGIN_BYTES = 8 * 1024 * 1024;
/** With less free space than this many reserves, workers measure before every commit. */
const TIGHT_RESERVES = 4;
/** The share of the reserve that all workers together may be committing at one moment. */
const COMMITTING_SHARE = 0.25;

export class StoreRoom implements CommitRoom, Disposable {
  readonly #options: StoreRoomOptions;
  #preallocate: Preallocate | undefined;
  readonly #descriptor: number;
  #timer: NodeJS.Timeout | undefined;
  #everyMs = 0;
  /** The end of the space set aside, as an offset in the file. */
  #reservedEnd = 0;
  #isPreallocating = false;
  #isClosed = false;
  #lookedAt = 0;
  /** The bytes that commits may still use before `look` has to measure again. */
  #surelyBytes = 0;
  /** Whether a commit waits: there is never more than one. */
  #isStalled = false;
  readonly #workers: number;
  /** Whether the disk has so little space that room must be left for commits of other workers. */
  #isTight = false;
  #wake: (() => void) | undefined;
  #state: RoomState = {
    level: 'ample',
    freeBytes: 0,
    reservedBytes: 0,
    fewInodes: undefined,
    stalled: false,
  };

  private constructor(options: StoreRoomOptions, preallocate: Preallocate | undefined) {
    this.#options = options;
    this.#preallocate = preallocate;
    this.#workers = options.workers ?? 1;
    this.#descriptor = openSync(join(options.path, DATA_FILE), 'r+');
    this.#lookEvery(LOOK_EVERY_MS);
    options.store.useRoom(this);
  }

  /** Sets the reserve aside. Resolves once the free space is known. */
  static async open(given: StoreRoomOptions): Promise<StoreRoom> {
    const { blocks, bsize } = statfsSync(given.path);
    const options = { ...given, reserveBytes: Math.min(given.reserveBytes, blocks * bsize * MAX_SHARE) };
    const preallocate = options.reserveBytes > 0 ? await loadPreallocate() : undefined;
    const room = new StoreRoom(options, preallocate);
    await room.#topUp(0);
    await room.#completeLockFile();
    room.look();
    return room;
  }

  get state(): RoomState {
    return this.#state;
  }

  get isFull(): boolean {
    return this.#state.level === 'full';
  }

  /** Called after each commit. */
  committed(): void {
    if (this.#state.stalled || performance.now() - this.#lookedAt >= MIN_LOOK_MS) this.look();
  }

  /**
   * Claims the most space that a commit can need. Returns undefined when there is enough, else a promise: once it
   * resolves, the commit has to ask again. Throws `OperatorError` when there is not enough space and waiting has
   * ended.
   */
  claim(bytes: number): Promise<void> | undefined {
    if (this.#isTight || bytes > this.#surelyBytes) this.look();
    if (this.#neededFor(bytes) <= this.#surelyBytes) {
      this.#surelyBytes -= bytes;
      this.#isStalled = false;
      return undefined;
    }
    if (this.#isClosed) throw new OperatorError('The disk is full.', 'Free some disk space.');
    return this.#makeRoom(bytes);
  }

  /**
   * Returns a promise: once it resolves, a failed commit must be tried again. Returns undefined when the error is not
   * about space.
   */
  waitAfter(error: unknown): Promise<void> | undefined {
    if (this.#isClosed || !isDiskFull(error, this.#freeBytes())) return undefined;
    return this.#wait();
  }

  async #makeRoom(bytes: number): Promise<void> {
    await this.#topUp(bytes * this.#workers);
    this.look();
    if (this.#neededFor(bytes) > this.#surelyBytes) await this.#wait();
  }

  /**
   * Returns the space that must be free before a commit begins, including the space for
   * simultaneous commits of other workers.
   */
  #neededFor(bytes: number): number {
    if (!this.#isTight) return bytes;
    const othersBytes = (this.#options.reserveBytes * COMMITTING_SHARE) / this.#workers;
    return bytes + (this.#workers - 1) * Math.max(bytes, othersBytes);
  }

  /**
   * Resolves after a while, or when the room is closed. Until a commit has its space, the level is
   * `full`: a failed attempt is not a change of the level.
   */
  async #wait(): Promise<void> {
    this.#isStalled = true;
    this.look();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, RETRY_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Finds out how much room there is now. */
  look(): RoomState {
    this.#lookedAt = performance.now();
    const { reserveBytes, warnBytes } = this.#options;
    const freeBytes = this.#freeBytes();
    const { usedBytes } = this.#options.store.extent();
    const reservedBytes = Math.max(0, this.#reservedEnd - usedBytes);
    const stalled = this.#isStalled;
    this.#isTight = this.#workers > 1 && freeBytes < Math.max(warnBytes, reserveBytes * TIGHT_RESERVES);
    const surelyBytes =
      this.#preallocate === undefined ? Math.max(0, freeBytes - MARGIN_BYTES) : reservedBytes;
    this.#surelyBytes = this.#isTight ? surelyBytes : surelyBytes / this.#workers;
    if (reservedBytes < reserveBytes * TOP_UP_BELOW && freeBytes > 0)
      unawaited(this.#topUp(0), 'store-room: the reservation of space');
    const before = this.#state;
    const level = this.#levelOf(freeBytes, reservedBytes, stalled);
    const freeInodes = freeInodesAt(this.#options.path);
    const fewInodes = freeInodes !== undefined && freeInodes < WARN_INODES ? freeInodes : undefined;
    this.#state = { level, freeBytes, reservedBytes, fewInodes, stalled };
    const isPlenty = level === 'ample' && freeBytes > warnBytes * PLENTY;
    if (!this.#isClosed) this.#lookEvery(isPlenty ? LOOK_SELDOM_MS : LOOK_EVERY_MS);
    const isOther = (fewInodes === undefined) !== (before.fewInodes === undefined);
    if (level !== before.level || stalled !== before.stalled || isOther) this.#options.onChange(this.#state);
    return this.#state;
  }

  #lookEvery(ms: number): void {
    if (ms === this.#everyMs) return;
    clearInterval(this.#timer);
    this.#everyMs = ms;
    this.#timer = setInterval(() => this.look(), ms).unref();
  }

  #levelOf(freeBytes: number, reservedBytes: number, stalled: boolean): RoomLevel {
    const { store, reserveBytes, warnBytes } = this.#options;
    if (stalled) return 'full';
    const needed = this.#state.level === 'full' ? reserveBytes * RECOVERED : reserveBytes;
    if (freeBytes + reservedBytes < needed) {
      // LMDB reuses deleted space within the file, unless it is in small pieces, so half of the
      // reserve must be left.
      const isReusable = reservedBytes >= reserveBytes / 2 && store.extent().reusableBytes >= needed;
      if (!isReusable) return 'full';
    }
    return freeBytes < warnBytes ? 'low' : 'ample';
  }

  /** Sets aside the reserve and, in addition, the space that a commit needs; less when there is not enough. */
  async #topUp(bytesNeeded: number): Promise<void> {
    const preallocate = this.#preallocate;
    if (preallocate === undefined || this.#isPreallocating || this.#isClosed) return;
    this.#isPreallocating = true;
    try {
      const { usedBytes } = this.#options.store.extent();
      let bytes = this.#options.reserveBytes + bytesNeeded;
      while (bytes >= MIN_RESERVE_BYTES && usedBytes + bytes > this.#reservedEnd) {
        if (await preallocate(this.#descriptor, usedBytes, bytes)) this.#reservedEnd = usedBytes + bytes;
        else bytes = Math.floor(bytes / 2);
      }
      // There is free space, but the file system cannot set it aside.
      if (this.#reservedEnd === 0 && this.#freeBytes() > 2 * MARGIN_BYTES) this.#preallocate = undefined;
    } finally {
      this.#isPreallocating = false;
      if (this.#isClosed) closeSync(this.#descriptor);
    }
  }

  /**
   * LMDB writes to its table of readers through memory: a page that the file lacks on a full disk would end the process
   * (SIGBUS). The file is reached by LMDB's own descriptor, because closing another one would release LMDB's lock on it,
   * and other programs would then take this process for dead.
   */
  async #completeLockFile(): Promise<void> {
    const lock = statSync(join(this.#options.path, LOCK_FILE));
    const descriptor = descriptorOf(lock.dev, lock.ino);
    if (descriptor !== undefined) await this.#preallocate?.(descriptor, 0, lock.size);
  }

  #freeBytes(): number {
    return freeBytesAt(this.#options.path);
  }

  /** Commits that wait for space fail from now on. */
  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#wake?.();
    if (!this.#isPreallocating) closeSync(this.#descriptor);
  }
}

/** Returns how many more files the file system at `path` takes; undefined when it has no such limit, or is gone. */
export function freeInodesAt(path: string): number | undefined {
  try {
    const { files, ffree } = statfsSync(path);
    return files === 0 ? undefined : ffree;
  } catch {
    return undefined;
  }
}

/** Returns how many bytes are free at `path` for the server's user; 0 when the volume is gone, which the next write reports. */
export function freeBytesAt(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
