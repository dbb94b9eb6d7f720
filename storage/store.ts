/**
 * The store of one server: a single LMDB environment and the only door through which anything is written.
 *
 * One turn, one commit: everything written during one turn of the event loop lands in one LMDB transaction, which is
 * flushed to disk before it counts as committed. Reads by key see what this process has written, committed or not, so
 * a decision made on them is made on the truth; nobody outside may be told of it before `durable()` has resolved.
 * Reads by range see committed values only.
 *
 * There is one process per data directory (`data-directory.ts`), so a decision made synchronously on the latest
 * values is atomic without holding LMDB's own write lock.
 */
import type { RootDatabase } from 'lmdb';
import { reach } from '#src/core/fault-points.ts';
import { decodeRecord, encodeRecord, type RecordKind } from './codec.ts';
import { BEHIND_ALL, checkKey, type Key, keyText } from './keys.ts';

/** What a synchronous callback may return: anything but a promise, which would outlive the transaction. */
type Sync<T> = T extends Promise<unknown> ? never : T;

export interface Transaction {
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined;
  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void;
  remove(kind: RecordKind<unknown>, partition: string, ...ids: string[]): void;
}

export interface Page {
  /** Only entries behind this id (exclusive). */
  readonly after?: string | undefined;
  readonly limit: number;
  readonly reverse?: boolean;
}

export interface Entry<T> {
  readonly id: string;
  readonly value: T;
}

interface PendingWrite {
  readonly key: Key;
  /** `undefined` removes. */
  readonly bytes: Uint8Array | undefined;
}

class Turn {
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
  /** The latest write of each key that is not committed yet. */
  readonly #uncommitted = new Map<string, PendingWrite>();
  readonly #beforeCommit: (() => void)[] = [];
  #turn: Turn | undefined;
  /** The commit issued last; LMDB finishes commits in the order they were issued. */
  #issued: Promise<unknown> = Promise.resolve();
  #lastDurable: Promise<void> | undefined;
  #failure: Error | undefined;
  #hasSeenUncommitted = false;

  /**
   * `onFatal` is called once, when a commit fails: memory is then ahead of the disk and the process has to end. Nothing
   * is committed any more, for it would stand on what was lost.
   */
  constructor(database: RootDatabase<Buffer, Key>, onFatal: (error: Error) => void) {
    this.#database = database;
    this.#onFatal = onFatal;
  }

  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    const key: Key = [partition, kind.name, ...ids];
    const pending = this.#uncommitted.size === 0 ? undefined : this.#uncommitted.get(keyText(key));
    if (pending !== undefined) this.#hasSeenUncommitted = true;
    const bytes = pending === undefined ? this.#database.getBinary(key) : pending.bytes;
    return bytes === undefined ? undefined : decodeRecord(kind, bytes);
  }

  /**
   * Committed records of `kind` under `prefix`, in key order. `after` need not exist. The last id of each key is
   * given as `id`.
   */
  *list<T>(
    kind: RecordKind<T>,
    partition: string,
    prefix: readonly string[],
    page: Page,
  ): Generator<Entry<T>> {
    const low: Key = [partition, kind.name, ...prefix];
    const high: Key = [partition, kind.name, ...prefix, BEHIND_ALL];
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

  /** The ids of the first `limit` committed keys of `kind` under `prefix`, in key order; values are not read. */
  *listKeys(
    kind: RecordKind<unknown>,
    partition: string,
    prefix: readonly string[],
    limit: number,
  ): Generator<string[]> {
    const start: Key = [partition, kind.name, ...prefix];
    const end: Key = [partition, kind.name, ...prefix, '\uffff'];
    for (const key of this.#database.getKeys({ start, end, limit })) {
      const [, , ...ids] = key;
      yield ids;
    }
  }

  /**
   * Runs `decide` at once and keeps what it wrote for this turn's commit. When it throws, nothing of it is kept. Its
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
      const turn = this.openTurn();
      for (const [text, write] of staged) {
        turn.writes.set(text, write);
        this.#uncommitted.set(text, write);
      }
    }
    return result;
  }

  /** Makes sure that this turn ends with a commit, even when nothing was written yet, so that hooks may add to it. */
  openTurn(): { readonly writes: Map<string, PendingWrite>; readonly durable: Promise<void> } {
    if (this.#turn === undefined) {
      const turn = new Turn();
      turn.durable.catch(() => undefined); // a failed commit is reported once, through onFatal
      this.#turn = turn;
      this.#lastDurable = turn.durable;
      setImmediate(() => this.#commit());
    }
    return this.#turn;
  }

  /**
   * Runs `read` at once. `uncommitted` resolves when everything it saw is on disk, and is `undefined` when it is: what a
   * crash could undo is shown to nobody.
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

  /** Counts as a read of something kept elsewhere that this record, or `isMoving` the open turn, is to save. */
  noteRead(isMoving: boolean, { name }: RecordKind<unknown>, partition: string, ...ids: string[]): void {
    if (
      isMoving ||
      (this.#uncommitted.size > 0 && this.#uncommitted.has(keyText([partition, name, ...ids])))
    ) {
      this.#hasSeenUncommitted = true;
    }
  }

  /** Hooks run when a turn ends and may still write into it: the actor runtime saves its snapshots here. */
  beforeCommit(hook: () => void): void {
    this.#beforeCommit.push(hook);
  }

  /** Resolves when everything written so far is committed and on disk; `undefined` when it already is. */
  durable(): Promise<void> | undefined {
    return this.#lastDurable;
  }

  #commit(): void {
    for (const hook of this.#beforeCommit) hook();
    const turn = this.#turn;
    if (turn === undefined) return;
    this.#turn = undefined;
    reach('turn.decided');
    // An empty turn has nothing of its own to wait for, but must not overtake the turns before it.
    if (turn.writes.size > 0) this.#issued = this.#issue(turn);
    this.#issued.then(
      () => this.#settle(turn),
      (error: Error) => {
        turn.reject(error);
        if (this.#failure !== undefined) return;
        this.#failure = error;
        this.#onFatal(error);
      },
    );
  }

  async #issue(turn: Turn): Promise<unknown> {
    if (this.#failure !== undefined) throw this.#failure;
    return this.#database.batch(() => {
      for (const { key, bytes } of turn.writes.values()) {
        if (bytes === undefined) void this.#database.remove(key);
        else void this.#database.put(key, bytes as Buffer);
      }
    });
  }

  #settle(turn: Turn): void {
    reach('turn.durable');
    for (const [text, write] of turn.writes) {
      if (this.#uncommitted.get(text) === write) this.#uncommitted.delete(text);
    }
    if (this.#lastDurable === turn.durable) this.#lastDurable = undefined;
    turn.resolve();
  }

  /** Commits what was written, also by others while it waits, and closes. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (let open = this.durable(); open !== undefined; open = this.durable()) await open;
    } finally {
      await this.#database.close();
    }
  }
}
