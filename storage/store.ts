/**
 * The store of one server: one LMDB environment, and the only way in which anything is written to it.
 *
 * One turn, one commit: everything that is written during one turn of the event loop goes into one LMDB transaction,
 * which is flushed to disk before it counts as committed. Reads by key see what this process has written, committed or
 * not, so decisions are made on the latest values; nobody outside may learn of them before `durable()` has resolved.
 * Reads by range see committed values only.
 *
 * One server owns a data directory (`data-directory.ts`), and of its workers one decides what is written of a workspace. So
 * a decision that is made synchronously on the latest values is atomic without LMDB's write lock. What other workers have
 * committed is seen after `refresh`.
 */
import type { RootDatabase } from 'lmdb';
import { faultPoint } from '#src/core/fault-points.ts';
import {
  DamagedRecord,
  decodeRecord,
  type EncodedRecord,
  encodeRecord,
  problemOf,
  type RecordKind,
} from './codec.ts';
import { CommitQueue, type CommitRoom, PendingCommit, type PendingWrite } from './commit-queue.ts';
import { checkKey, type Key, keyText, partitionRange, rangeOf } from './keys.ts';
import { extentOf, type StoreExtent } from './store-extent.ts';

/** The result of a synchronous callback: anything but a promise, which would outlive the transaction. */
type Sync<T> = T extends Promise<unknown> ? never : T;

/** What a `write` callback reads and writes. `get` sees what the callback itself has written. */
export interface Transaction {
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined;
  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void;
  /** Puts a record that `encodeRecord` has made. */
  putEncoded(record: EncodedRecord<unknown>, partition: string, ...ids: string[]): void;
  remove(kind: RecordKind<unknown>, partition: string, ...ids: string[]): void;
}

/** Which entries of a range to return. */
export interface Page {
  /** Only entries after this id, or before it when `reverse`. It need not exist. */
  readonly after?: string | undefined;
  /** Only entries up to this id, or down to it when `reverse`. It need not exist. */
  readonly until?: string | undefined;
  readonly limit: number;
  readonly reverse?: boolean;
}

/** One record of a range; `id` is the last part of its key. */
export interface Entry<T> {
  readonly id: string;
  readonly value: T;
}

export class Store implements AsyncDisposable {
  readonly #database: RootDatabase<Buffer, Key>;
  /** The latest write of every key that has one which is not committed yet. */
  readonly #uncommitted = new Map<string, PendingWrite>();
  readonly #beforeCommit: (() => void)[] = [];
  #pending: PendingCommit | undefined;
  readonly #commits: CommitQueue;
  readonly #resetRead: () => void;
  #lastDurable: Promise<void> | undefined;
  #onDamage: (key: Key, problem: string) => void = () => undefined;
  #hasSeenUncommitted = false;
  #isClosed = false;

  /**
   * `onFatal` is called once, when a commit fails for good: memory is then ahead of the disk, and the process has to end.
   * Nothing is committed after that, because later decisions depend on the lost ones.
   */
  constructor(database: RootDatabase<Buffer, Key>, onFatal: (error: Error) => void) {
    this.#database = database;
    this.#commits = new CommitQueue(database, (commit) => this.#settle(commit), onFatal);
    this.#resetRead = () => database.resetReadTxn();
  }

  /**
   * Makes reads see all that other processes have committed until now. Without it they may read as it was at the beginning
   * of this turn of the event loop. Ranges that are being read stay as they are.
   */
  refresh(): void {
    if (!this.#isClosed) this.#resetRead();
  }

  /**
   * Removes the readers of processes that were killed: the pages that those read would never be used again. Does nothing once
   * the store is closed.
   */
  dropDeadReaders(): void {
    if (!this.#isClosed) this.#database.readerCheck();
  }

  /** Returns the latest value, committed or not. Throws `DamagedRecord` when it is not what was written. */
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    const key: Key = [partition, kind.name, ...ids];
    const pending = this.#uncommitted.size === 0 ? undefined : this.#uncommitted.get(keyText(key));
    if (pending !== undefined) this.#hasSeenUncommitted = true;
    const bytes = pending === undefined ? this.#database.getBinary(key) : pending.bytes;
    if (bytes === undefined) return undefined;
    try {
      return decodeRecord(kind, bytes);
    } catch (error) {
      if (error instanceof DamagedRecord) this.#onDamage(key, error.message);
      throw error;
    }
  }

  #decodeListed<T>(kind: RecordKind<T>, key: Key, bytes: Uint8Array): { readonly value: T } | undefined {
    try {
      return { value: decodeRecord(kind, bytes) };
    } catch (error) {
      if (!(error instanceof DamagedRecord)) throw error;
      this.#onDamage(key, error.message);
      return undefined;
    }
  }

  /** Yields the committed records of `kind` under `prefix`, in key order. Damaged ones are reported and left out. */
  *list<T>(
    kind: RecordKind<T>,
    partition: string,
    prefix: readonly string[],
    page: Page,
  ): Generator<Entry<T>> {
    const { low, high } = rangeOf(partition, kind.name, prefix);
    const { after, until, limit, reverse = false } = page;
    const bounds = reverse
      ? { start: after === undefined ? high : [...low, after], end: low }
      : { start: after === undefined ? low : [...low, after], end: high };
    let taken = 0;
    for (const { key, value } of this.#database.getRange({ ...bounds, reverse, snapshot: true })) {
      const id = key[key.length - 1] ?? '';
      if (key.length <= low.length || id === after) continue;
      if (until !== undefined && (reverse ? id < until : id > until)) return;
      if (taken >= limit) return;
      const record = this.#decodeListed(kind, key, value);
      if (record === undefined) continue;
      taken++;
      yield { id, value: record.value };
    }
  }

  /**
   * Yields the ids of the first `limit` committed keys of `kind` under `prefix`, in key order. Values are not read. With
   * `beyond` it begins after all keys under that prefix.
   */
  *listKeys(
    kind: RecordKind<unknown>,
    partition: string,
    prefix: readonly string[],
    limit: number,
    beyond?: readonly string[],
  ): Generator<string[]> {
    const { low, high } = rangeOf(partition, kind.name, prefix);
    const start = beyond === undefined ? low : rangeOf(partition, kind.name, beyond).high;
    for (const key of this.#database.getKeys({ start, end: high, limit })) {
      const [, , ...ids] = key;
      yield ids;
    }
  }

  /** Returns the partition after this one in key order, or the first; undefined when there is none. */
  nextPartition(after: string | undefined): string | undefined {
    const range = after === undefined ? {} : { start: partitionRange(after).high };
    for (const [partition] of this.#database.getKeys({ ...range, limit: 1 })) return partition;
    return undefined;
  }

  /** Yields the first `limit` committed keys of a partition, of whatever kind. Values are not read. */
  listPartition(partition: string, limit: number): Iterable<Key> {
    const { low, high } = partitionRange(partition);
    return this.#database.getKeys({ start: low, end: high, limit });
  }

  /** Yields the committed records of a partition after `after`, or from its first on, with the bytes of their values. */
  *listSizes(
    partition: string,
    after: Key | undefined,
  ): Generator<{ readonly key: Key; readonly bytes: number }> {
    const { low, high } = partitionRange(partition);
    const range = { start: after ?? low, end: high, exclusiveStart: after !== undefined, snapshot: true };
    for (const { key, value } of this.#database.getRange(range)) yield { key, bytes: value.byteLength };
  }

  /**
   * Runs `decide` at once and adds what it wrote to this turn's commit. When it throws, nothing of it is written. Its
   * reads see its own writes.
   */
  write<T>(decide: (transaction: Transaction) => Sync<T>): Sync<T> {
    const staged = new Map<string, PendingWrite>();
    const stage = (name: string, bytes: Uint8Array | undefined, partition: string, ids: string[]) => {
      const key = checkKey([partition, name, ...ids]);
      staged.set(keyText(key), { key, bytes });
    };
    const result = decide({
      get: (kind, partition, ...ids) => {
        const own = staged.get(keyText([partition, kind.name, ...ids]));
        if (own === undefined) return this.get(kind, partition, ...ids);
        return own.bytes === undefined ? undefined : decodeRecord(kind, own.bytes);
      },
      put: (kind, value, partition, ...ids) => stage(kind.name, encodeRecord(kind, value), partition, ids),
      putEncoded: ({ kind, bytes }, partition, ...ids) => stage(kind.name, bytes, partition, ids),
      remove: (kind, partition, ...ids) => stage(kind.name, undefined, partition, ids),
    });
    if (staged.size > 0) {
      const { writes } = this.openTurn();
      for (const [text, write] of staged) {
        writes.set(text, write);
        this.#uncommitted.set(text, write);
      }
    }
    return result;
  }

  /** Returns this turn's commit, which then takes place even if nothing is written: `beforeCommit` hooks add to it. */
  openTurn(): { readonly writes: Map<string, PendingWrite>; readonly durable: Promise<void> } {
    if (this.#pending === undefined) {
      const pending = new PendingCommit();
      pending.durable.catch(() => undefined); // `onFatal` reports a failed commit
      this.#pending = pending;
      this.#lastDurable = pending.durable;
      setImmediate(() => this.#commit());
    }
    return this.#pending;
  }

  /**
   * Runs `read` at once. `uncommitted` resolves once everything that `read` saw is on disk, and is undefined when it is
   * already: nobody may be shown what a crash could undo.
   */
  observe<T>(read: () => T): { readonly result: T; readonly uncommitted: Promise<void> | undefined } {
    const before = this.#hasSeenUncommitted;
    this.#hasSeenUncommitted = false;
    try {
      const result = read();
      return { result, uncommitted: this.#hasSeenUncommitted ? this.#lastDurable : undefined };
    } finally {
      this.#hasSeenUncommitted ||= before;
    }
  }

  /**
   * Counts as a read of something that is kept in memory and saved in this record. `isMoving` says that it has changed
   * and the open turn will save it.
   */
  noteRead(isMoving: boolean, { name }: RecordKind<unknown>, partition: string, ...ids: string[]): void {
    if (
      isMoving ||
      (this.#uncommitted.size > 0 && this.#uncommitted.has(keyText([partition, name, ...ids])))
    ) {
      this.#hasSeenUncommitted = true;
    }
  }

  /** Counts as a read of everything that has been written so far, for what is kept in memory without a record to name. */
  noteReadOfAll(): void {
    this.#hasSeenUncommitted = true;
  }

  /** Registers a hook that runs when a turn ends and may still write: the actor runtime saves its snapshots in one. */
  beforeCommit(hook: () => void): void {
    this.#beforeCommit.push(hook);
  }

  /** Returns a promise that resolves once everything written so far is on disk, or undefined when it already is. */
  durable(): Promise<void> | undefined {
    return this.#lastDurable;
  }

  /** Calls `report` with the key of every damaged record that is met. */
  onDamage(report: (key: Key, problem: string) => void): void {
    this.#onDamage = report;
  }

  /** Tells `room` of every commit, and lets it decide whether one that failed waits for space. */
  useRoom(room: CommitRoom): void {
    this.#commits.room = room;
  }

  /** Whether the disk is full: what can be left out is not to be written. */
  get isFull(): boolean {
    return this.#commits.room?.isFull ?? false;
  }

  /** Returns the size of the store up to its last page, and how much of that LMDB will use again before it grows. */
  extent(): StoreExtent {
    return extentOf(this.#database.getStats());
  }

  /** Yields every committed record with what is wrong with it, if anything. Reads all of them. */
  *checkAll(): Generator<{ readonly key: Key; readonly problem: string | undefined }> {
    for (const { key, value } of this.#database.getRange({ snapshot: true }))
      yield { key, problem: problemOf(value) };
  }

  /**
   * Copies the committed store, as it is at one moment, to the empty `directory`; writes go on meanwhile. With `compact`
   * free pages are left out.
   */
  async copyTo(directory: string, compact: boolean): Promise<void> {
    await this.#database.backup(directory, compact);
  }

  #commit(): void {
    for (const hook of this.#beforeCommit) hook();
    const pending = this.#pending;
    if (pending === undefined) return;
    this.#pending = undefined;
    faultPoint('turn.decided');
    this.#commits.add(pending);
  }

  #settle({ writes, durable, resolve }: PendingCommit): void {
    faultPoint('turn.durable');
    for (const [text, write] of writes) {
      if (this.#uncommitted.get(text) === write) this.#uncommitted.delete(text);
    }
    if (this.#lastDurable === durable) this.#lastDurable = undefined;
    resolve();
  }

  /** Waits until everything is committed, including what is written meanwhile, and closes the database. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (let open = this.durable(); open !== undefined; open = this.durable()) await open;
    } finally {
      this.#isClosed = true;
      await this.#database.close();
    }
  }
}
