/**
 * The store of one server: one LMDB environment, and the only way in which anything is written to it.
 *
 * One turn, one commit: everything that is written during one turn of the event loop goes into one LMDB transaction,
 * which is flushed to disk before it counts as committed. Reads by key see what this process has written, committed or
 * not, so decisions are made on the latest values; nobody outside may learn of them before `durable()` has resolved.
 * Reads by range see committed values only.
 *
 * One process owns a data directory (`data-directory.ts`), so a decision that is made synchronously on the latest values
 * is atomic without LMDB's write lock.
 */
import type { RootDatabase } from 'lmdb';
import { faultPoint } from '#src/core/fault-points.ts';
import { decodeRecord, encodeRecord, type RecordKind } from './codec.ts';
import { checkKey, type Key, keyText, rangeOf } from './keys.ts';

/** The result of a synchronous callback: anything but a promise, which would outlive the transaction. */
type Sync<T> = T extends Promise<unknown> ? never : T;

/** What a `write` callback reads and writes. `get` sees what the callback itself has written. */
export interface Transaction {
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined;
  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void;
  remove(kind: RecordKind<unknown>, partition: string, ...ids: string[]): void;
}

/** Which entries of a range to return. */
export interface Page {
  /** Only entries after this id, or before it when `reverse`. It need not exist. */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly reverse?: boolean;
}

/** One record of a range; `id` is the last part of its key. */
export interface Entry<T> {
  readonly id: string;
  readonly value: T;
}

interface PendingWrite {
  readonly key: Key;
  /** `undefined` removes the record. */
  readonly bytes: Uint8Array | undefined;
}

/** What one turn of the event loop has written, and the promise that its commit settles. */
class PendingCommit {
  readonly writes = new Map<string, PendingWrite>();
  resolve!: () => void;
  reject!: (error: Error) => void;
  readonly durable = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

export class Store implements AsyncDisposable {
  readonly #database: RootDatabase<Buffer, Key>;
  readonly #onFatal: (error: Error) => void;
  /** The latest write of every key that has one which is not committed yet. */
  readonly #uncommitted = new Map<string, PendingWrite>();
  readonly #beforeCommit: (() => void)[] = [];
  #pending: PendingCommit | undefined;
  /** The commit that was issued last. LMDB finishes commits in the order in which they were issued. */
  #issued: Promise<unknown> = Promise.resolve();
  #lastDurable: Promise<void> | undefined;
  #failure: Error | undefined;
  #hasSeenUncommitted = false;

  /**
   * `onFatal` is called once, when a commit fails: memory is then ahead of the disk, and the process has to end. Nothing
   * is committed after that, because later decisions depend on the lost ones.
   */
  constructor(database: RootDatabase<Buffer, Key>, onFatal: (error: Error) => void) {
    this.#database = database;
    this.#onFatal = onFatal;
  }

  /** Returns the latest value, committed or not. */
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    const key: Key = [partition, kind.name, ...ids];
    const pending = this.#uncommitted.size === 0 ? undefined : this.#uncommitted.get(keyText(key));
    if (pending !== undefined) this.#hasSeenUncommitted = true;
    const bytes = pending === undefined ? this.#database.getBinary(key) : pending.bytes;
    return bytes === undefined ? undefined : decodeRecord(kind, bytes);
  }

  /** Yields the committed records of `kind` under `prefix`, in key order. */
  *list<T>(
    kind: RecordKind<T>,
    partition: string,
    prefix: readonly string[],
    page: Page,
  ): Generator<Entry<T>> {
    const { low, high } = rangeOf(partition, kind.name, prefix);
    const { after, limit, reverse = false } = page;
    const bounds = reverse
      ? { start: after === undefined ? high : [...low, after], end: low }
      : { start: after === undefined ? low : [...low, after], end: high };
    let taken = 0;
    for (const { key, value } of this.#database.getRange({ ...bounds, reverse, snapshot: true })) {
      const id = key[key.length - 1] ?? '';
      if (key.length <= low.length || id === after) continue;
      if (taken++ >= limit) return;
      yield { id, value: decodeRecord(kind, value) };
    }
  }

  /** Yields the ids of the first `limit` committed keys of `kind` under `prefix`, in key order. Values are not read. */
  *listKeys(
    kind: RecordKind<unknown>,
    partition: string,
    prefix: readonly string[],
    limit: number,
  ): Generator<string[]> {
    const { low, high } = rangeOf(partition, kind.name, prefix);
    for (const key of this.#database.getKeys({ start: low, end: high, limit })) {
      const [, , ...ids] = key;
      yield ids;
    }
  }

  /**
   * Runs `decide` at once and adds what it wrote to this turn's commit. When it throws, nothing of it is written. Its
   * reads see its own writes.
   */
  write<T>(decide: (transaction: Transaction) => Sync<T>): Sync<T> {
    const staged = new Map<string, PendingWrite>();
    const result = decide({
      get: (kind, partition, ...ids) => {
        const own = staged.get(keyText([partition, kind.name, ...ids]));
        if (own === undefined) return this.get(kind, partition, ...ids);
        return own.bytes === undefined ? undefined : decodeRecord(kind, own.bytes);
      },
      put: (kind, value, partition, ...ids) => {
        const key = checkKey([partition, kind.name, ...ids]);
        staged.set(keyText(key), { key, bytes: encodeRecord(kind, value) });
      },
      remove: (kind, partition, ...ids) => {
        const key = checkKey([partition, kind.name, ...ids]);
        staged.set(keyText(key), { key, bytes: undefined });
      },
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

  #commit(): void {
    for (const hook of this.#beforeCommit) hook();
    const pending = this.#pending;
    if (pending === undefined) return;
    this.#pending = undefined;
    faultPoint('turn.decided');
    // A commit without writes has nothing of its own to wait for, but must not overtake the commits before it.
    if (pending.writes.size > 0) this.#issued = this.#issue(pending);
    this.#issued.then(
      () => this.#settle(pending),
      (error: Error) => {
        pending.reject(error);
        if (this.#failure !== undefined) return;
        this.#failure = error;
        this.#onFatal(error);
      },
    );
  }

  async #issue({ writes }: PendingCommit): Promise<unknown> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#database.batch(() => {
      for (const { key, bytes } of writes.values()) {
        if (bytes === undefined) void this.#database.remove(key);
        else void this.#database.put(key, bytes as Buffer);
      }
    });
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
      await this.#database.close();
    }
  }
}
