/**
 * The store of one server: one LMDB environment, and the only way in which anything is written to it.
 *
 * One turn, one commit: everything that is written during one turn of the event loop goes into one LMDB transaction,
 * which is flushed to disk before it counts as committed. Reads by key see the writes of this process, committed or
 * not, so decisions are made on the latest values. No client may see the result of a decision before `durable()` has
 * resolved. Reads by range see committed values only (`committed-records.ts`), except for `idsUnder`.
 *
 * One server owns a data directory (`data-directory.ts`), and one of its workers decides all writes for a notebook or
 * conversation, and one worker decides all writes for a workspace itself. So a decision that is made synchronously on
 * the latest values is atomic without LMDB's write lock. Commits of other workers are visible after `refresh`.
 * Decisions that several workers may make at once are made in a shared turn (`decide`).
 */
import type { RootDatabase } from 'lmdb';
import { readOnly } from '#src/base/errors/errors.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { RecordKind } from './codec.ts';
import { CommitQueue, type CommitRoom, PendingCommit, type PendingWrite } from './commit-queue.ts';
import { CommitWitness } from './commit-witness.ts';
import type { OpeningGate } from './disk/opening-gate.ts';
import { extentOf, type StoreExtent } from './disk/store-extent.ts';
import { keyText, type StoreKey } from './keys.ts';
import { CommittedRecords } from './lists/committed-records.ts';
import type { RecordCache } from './record-cache.ts';
import { StagedTransaction, type Transaction } from './transaction.ts';

/** The length of the value that `getBinaryFast` has read last, which the declarations of lmdb leave out. */
type Sized = RootDatabase<Buffer, StoreKey> & { readonly lastSize: number };

/** The result of a synchronous callback: anything but a promise, which would outlive the transaction. */
type Sync<T> = T extends Promise<unknown> ? never : T;

export interface StoreOptions {
  /** Whether other processes write the store as well. */
  readonly isShared?: boolean;
  /** The gate that commits pass, so that no process opens the store during a commit. The store takes ownership. */
  readonly gate?: OpeningGate;
  /** Whether every write is refused, because the server only reads. */
  readonly isReadOnly?: boolean;
}

/** How long a commit waits for the next turn (`commitWithNextTurn`). An interrupted cell ends after 1 to 3 ms. */
const MAX_WAIT_MS = 5;

export class Store extends CommittedRecords implements AsyncDisposable {
  readonly #database: RootDatabase<Buffer, StoreKey>;
  /** The latest uncommitted write of every key that has one. */
  readonly #uncommitted = new Map<string, PendingWrite>();
  readonly #beforeCommit: (() => void)[] = [];
  readonly #onFlushed: ((ms: number) => void)[] = [];
  /** Whether other processes write the store as well. */
  readonly isShared: boolean;
  /** Whether `write` throws `read_only`. Work of the server's own looks at this and leaves its writes out. */
  readonly isReadOnly: boolean;
  #isDeciding = false;
  #onLostCommit = (): void => {};
  #onFailedDecision = (error: unknown): void => {
    throw error;
  };
  #pending: PendingCommit | undefined;
  readonly #commits: CommitQueue;
  readonly #gate: OpeningGate | undefined;
  readonly #resetRead: () => void;
  #lastDurable: Promise<void> | undefined;
  #hasSeenUncommitted = false;
  /** Set while the commit of an earlier turn waits for the next one. */
  #waiting: NodeJS.Timeout | undefined;
  #isClosed = false;

  /**
   * `onFatal` is called once, when a commit fails for good. Memory is then ahead of the disk, so
   * the process has to end. Nothing is committed after that, because later decisions depend on the
   * lost ones.
   */
  constructor(
    database: RootDatabase<Buffer, StoreKey>,
    onFatal: (error: Error) => void,
    { isShared = false, gate, isReadOnly = false }: StoreOptions = {},
  ) {
    super(database);
    this.#database = database;
    this.isShared = isShared;
    this.isReadOnly = isReadOnly;
    this.#gate = gate;
    this.#commits = new CommitQueue(database, {
      gate,
      witness: isShared ? new CommitWitness(database) : undefined,
      onLost: () => this.#onLostCommit(),
      closeTurn: () => this.#closeTurn(),
      onCommitted: (commit) => this.#settle(commit),
      onFlushed: (ms) => {
        for (const listener of this.#onFlushed) listener(ms);
      },
      onFatal,
    });
    this.#resetRead = () => database.resetReadTxn();
  }

  /**
   * Makes reads see all that other processes have committed until now. Without it they may show the
   * state at the beginning of this turn of the event loop. Ranges that are being read stay as they
   * are.
   */
  refresh(): void {
    if (!this.#isClosed) this.#resetRead();
  }

  /**
   * Refreshes like `refresh` where other processes write the store, for reads outside of a request: a kernel or an
   * agent must not read an older state than another worker has acknowledged. A shared turn needs no refresh.
   */
  refreshShared(): void {
    if (!this.mayDecide) this.refresh();
  }

  /**
   * Removes the readers of processes that were killed, because LMDB would never reuse the pages
   * that those were reading. Does nothing once the store is closed.
   */
  dropDeadReaders(): void {
    if (!this.#isClosed) this.#database.readerCheck();
  }

  /** Returns the latest value, committed or not. Throws `DamagedRecord` when the stored bytes are damaged. */
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    const key: StoreKey = [partition, kind.name, ...ids];
    const bytes = this.#bytesOf(key);
    return bytes === undefined ? undefined : this.decode(kind, key, bytes);
  }

  /**
   * Returns the cache's result for the latest value, committed or not; undefined when there is no such record. Throws as `get`
   * does. A record that has not changed is read, but not decoded again.
   */
  compute<T, V>(cache: RecordCache<T, V>, partition: string, id: string): V | undefined {
    const key: StoreKey = [partition, cache.kind.name, id];
    if (this.#uncommitted.size === 0 && cache.has(partition, id)) {
      // The bytes stay LMDB's, and are valid until the next read: a copy would take longer than the rest of this read.
      const shared = this.#database.getBinaryFast(key);
      if (shared === undefined) return undefined;
      const known = cache.find(partition, id, shared, (this.#database as Sized).lastSize);
      if (known !== undefined) return known;
    }
    const bytes = this.#bytesOf(key);
    if (bytes === undefined) return undefined;
    const known = cache.find(partition, id, bytes);
    if (known !== undefined) return known;
    const result = cache.compute(this.decode(cache.kind, key, bytes), id);
    cache.keep(partition, id, bytes, result);
    return result;
  }

  /** Returns the bytes of the latest value, committed or not. */
  #bytesOf(key: StoreKey): Uint8Array | undefined {
    const pending = this.#uncommitted.size === 0 ? undefined : this.#uncommitted.get(keyText(key));
    if (pending === undefined) return this.#database.getBinary(key);
    this.#hasSeenUncommitted = true;
    return pending.bytes;
  }

  /** Returns whether there is a record, committed or not. It costs less than to read the record. */
  has({ name }: RecordKind<unknown>, partition: string, ...ids: string[]): boolean {
    const key: StoreKey = [partition, name, ...ids];
    const pending = this.#uncommitted.size === 0 ? undefined : this.#uncommitted.get(keyText(key));
    if (pending === undefined) return this.#database.doesExist(key);
    this.#hasSeenUncommitted = true;
    return pending.bytes !== undefined;
  }

  /**
   * Returns the part after `prefix` of the keys of all records under it, committed or not. Use it
   * for a decision about all of them, such as a deletion. Use it rarely, because it examines all
   * uncommitted writes.
   */
  idsUnder(kind: RecordKind<unknown>, partition: string, ...prefix: string[]): Set<string> {
    const ids = new Set<string>();
    for (const key of this.listKeys(kind, partition, prefix, Number.POSITIVE_INFINITY))
      ids.add(key[prefix.length] ?? '');
    const path = [partition, kind.name, ...prefix];
    for (const { key, bytes } of this.#uncommitted.values()) {
      if (key.length <= path.length || path.some((part, at) => key[at] !== part)) continue;
      this.#hasSeenUncommitted = true;
      const id = key[path.length] ?? '';
      if (bytes === undefined) ids.delete(id);
      else ids.add(id);
    }
    return ids;
  }

  /**
   * Runs `decide` at once and adds its writes to this turn's commit. When it throws, none of them is kept. Its reads
   * see its own writes. Throws `read_only` when there are writes and the server only reads.
   */
  write<T>(decide: (transaction: Transaction) => Sync<T>): Sync<T> {
    const transaction = new StagedTransaction(this);
    const result = decide(transaction);
    const decided = transaction.take();
    if (decided.size > 0) {
      if (this.isReadOnly) throw readOnly();
      const { writes } = this.openTurn();
      for (const [text, write] of decided) {
        writes.set(text, write);
        this.#uncommitted.set(text, write);
      }
    }
    return result;
  }

  /**
   * Runs `decision` in a turn in which no other process can commit anything: a shared turn. If only
   * one process has the store, that is the present turn. If several processes have it, it is LMDB's
   * write transaction, which costs as much as a commit: the decision runs later, and reads
   * everything that all processes have committed. Its writes are in one commit with the writes of
   * the present turn. If the decision throws, for instance because a record is damaged, the error
   * is reported (`onFailedDecision`) and its earlier writes stay, because an abort would lose the
   * other writes of the same commit.
   */
  decide(decision: () => void): void {
    if (this.mayDecide) this.#attempt(decision);
    else this.openTurn().decisions.push(() => this.#runDecision(decision));
  }

  /** Sets the listener for errors of decisions (`decide`). Until this is called, such an error is rethrown. */
  onFailedDecision(report: (error: unknown) => void): void {
    this.#onFailedDecision = report;
  }

  /** Sets the listener for the loss of a commit that LMDB had confirmed (`commit-witness.ts`). Only a shared store notices it. */
  onLostCommit(report: () => void): void {
    this.#onLostCommit = report;
  }

  #attempt(decision: () => void): void {
    try {
      decision();
    } catch (error) {
      this.#onFailedDecision(error);
    }
  }

  /** Whether no other process can commit between the present reads and the commit of this turn. */
  get mayDecide(): boolean {
    return !this.isShared || this.#isDeciding;
  }

  #runDecision(decision: () => void): void {
    this.#isDeciding = true;
    try {
      this.#attempt(decision);
    } finally {
      this.#isDeciding = false;
    }
  }

  /** Returns this turn's commit, which then takes place even if nothing is written: `beforeCommit` hooks add to it. */
  openTurn(): Pick<PendingCommit, 'writes' | 'decisions' | 'durable'> {
    if (this.#waiting !== undefined) this.#joinTurns();
    if (this.#pending === undefined) {
      const pending = new PendingCommit();
      pending.durable.catch(() => undefined); // `onFatal` reports a failed commit
      this.#pending = pending;
      this.#lastDurable = pending.durable;
      setImmediate(() =>
        pending.expected === undefined ? this.#commit() : this.#awaitNextTurn(pending.expected),
      );
    }
    return this.#pending;
  }

  /**
   * Lets the commit of this turn wait for the next turn that writes, or whose replies and events wait for the disk,
   * but no longer than `MAX_WAIT_MS`. It is for a turn that begins an operation whose end will soon be written.
   * Beginning and end are then one flush, and the end need not wait for another flush before its own. When
   * `isExpected` returns false at the end of the turn, because the end is already written in this turn, the commit
   * does not wait.
   */
  commitWithNextTurn(isExpected: () => boolean): void {
    this.openTurn();
    if (this.#pending !== undefined) this.#pending.expected = [...(this.#pending.expected ?? []), isExpected];
  }

  #awaitNextTurn(expected: NonNullable<PendingCommit['expected']>): void {
    if (expected.every((isExpected) => isExpected()))
      this.#waiting = setTimeout(() => this.#commit(), MAX_WAIT_MS);
    else this.#commit();
  }

  /** Commits an earlier turn that waits together with the present turn. */
  #joinTurns(): void {
    this.#stopWaiting();
    setImmediate(() => this.#commit());
  }

  #stopWaiting(): void {
    clearTimeout(this.#waiting);
    this.#waiting = undefined;
  }

  /**
   * Runs `read` with its arguments, at once. `uncommitted` resolves once everything that `read` saw is on disk, and is undefined when it is
   * already: no response may show data that a crash could undo.
   */
  observe<T, Of extends unknown[]>(
    read: (...of: Of) => T,
    ...of: Of
  ): { readonly result: T; readonly uncommitted: Promise<void> | undefined } {
    const before = this.#hasSeenUncommitted;
    this.#hasSeenUncommitted = false;
    try {
      const result = read(...of);
      return { result, uncommitted: this.#hasSeenUncommitted ? this.durable() : undefined };
    } finally {
      this.#hasSeenUncommitted ||= before;
    }
  }

  /**
   * Counts as a read of everything written so far. Use it after reading state in memory that belongs to no record.
   */
  noteReadOfAll(): void {
    this.#hasSeenUncommitted = true;
  }

  /** Registers a hook that runs when a turn ends and may still write: the actor runtime saves its snapshots in one. */
  beforeCommit(hook: () => void): void {
    this.#beforeCommit.push(hook);
  }

  /** Calls `listener` for each transaction that has written something, with the milliseconds from the end of its turn until it was on disk. */
  onFlushed(listener: (ms: number) => void): void {
    this.#onFlushed.push(listener);
  }

  /**
   * Returns a promise that resolves once everything written so far is on disk, or undefined when it
   * is there already.
   */
  durable(): Promise<void> | undefined {
    if (this.#waiting !== undefined) this.#joinTurns();
    return this.#lastDurable;
  }

  /** Notifies `room` of every commit, and lets it decide whether a failed commit waits for space. */
  useRoom(room: CommitRoom): void {
    this.#commits.room = room;
  }

  /** For how many milliseconds LMDB has been at work on a commit; 0 while there is none. */
  get commitMs(): number {
    return this.#commits.commitMs;
  }

  /** Whether the disk is full, so that optional writes must be left out. */
  get isFull(): boolean {
    return this.#commits.room?.isFull ?? false;
  }

  /**
   * Returns the size of the store up to its last page, and how much of it LMDB will use again
   * before the store grows.
   */
  extent(): StoreExtent {
    return extentOf(this.#database.getStats());
  }

  /**
   * Copies one committed state of the store to the empty `directory`, while writes continue. With `compact` free pages are left
   * out.
   */
  async copyTo(directory: string, compact: boolean): Promise<void> {
    await this.#database.backup(directory, compact);
  }

  /**
   * Holds the newest committed state until the result is disposed of: LMDB overwrites no page of
   * it, nor of any later state. The store grows by everything that is written during that time, so
   * hold a state for seconds only.
   */
  holdState(): Disposable {
    this.#resetRead();
    const transaction = this.#database.useReadTransaction();
    return { [Symbol.dispose]: () => transaction.done() };
  }

  #commit(): void {
    const pending = this.#closeTurn();
    if (pending === undefined) return; // a shared turn has taken it
    faultPoint('turn.decided');
    this.#commits.add(pending);
  }

  #closeTurn(): PendingCommit | undefined {
    if (this.#waiting !== undefined) this.#stopWaiting();
    for (const hook of this.#beforeCommit) hook();
    const pending = this.#pending;
    this.#pending = undefined;
    return pending;
  }

  #settle({ writes, durable, resolve }: PendingCommit): void {
    faultPoint('turn.durable');
    for (const [text, write] of writes) {
      if (this.#uncommitted.get(text) === write) this.#uncommitted.delete(text);
    }
    if (this.#lastDurable === durable) this.#lastDurable = undefined;
    resolve();
  }

  /** Waits until everything is committed, including writes made during the wait, and closes the database. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      for (let open = this.durable(); open !== undefined; open = this.durable()) await open;
    } finally {
      this.#isClosed = true;
      await this.#database.close();
      this.#gate?.[Symbol.dispose]();
    }
  }
}
