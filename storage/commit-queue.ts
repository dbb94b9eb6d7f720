/** Commits the turns of a store, one transaction after the other. */

import type { RootDatabase } from 'lmdb';
import { unawaited } from '#src/base/async/unawaited.ts';
import { systemFailure } from '#src/base/errors/operator-error.ts';
import { faultPause, faultPoint } from '#src/base/fault-points.ts';
import { commitFailureOf } from './commit-failure.ts';
import type { CommitWitness } from './commit-witness.ts';
import type { OpeningGate } from './disk/opening-gate.ts';
import { spaceFor } from './disk/store-extent.ts';
import type { StoreKey } from './keys.ts';

export interface PendingWrite {
  readonly key: StoreKey;
  /** `undefined` removes the record. */
  readonly bytes: Uint8Array | undefined;
}

/** The writes of one turn of the event loop, and the promise that its commit settles. */
export class PendingCommit {
  readonly writes = new Map<string, PendingWrite>();
  /** Decisions that wait for a shared turn (`Store.decide`), and join this commit. */
  readonly decisions: (() => void)[] = [];
  /** The time at which its turn ended. */
  endedAt = 0;
  /** Each returns whether a later write is still to come, for which this commit waits (`Store.commitWithNextTurn`). */
  expected: readonly (() => boolean)[] | undefined;
  resolve!: () => void;
  reject!: (error: Error) => void;
  readonly durable = new Promise<void>((resolve, reject) => {
    this.resolve = resolve;
    this.reject = reject;
  });
}

/** Knows how much space there is for commits (`store-room.ts`). */
export interface CommitRoom {
  /** Called after each commit. */
  committed(): void;
  /** Whether there is room only for writes that free space or end something. */
  readonly isFull: boolean;
  /**
   * Claims the space that a commit needs. If there is not enough, returns a promise: once it resolves, the commit has
   * to ask again.
   */
  claim(bytes: number): Promise<void> | undefined;
  /**
   * Returns a promise: once it resolves, a failed commit is tried again. Returns undefined when the commit has failed
   * for good.
   */
  waitAfter(error: unknown): Promise<void> | undefined;
}

export interface CommitQueueOptions {
  /** The gate that a transaction must pass before LMDB gets it. */
  readonly gate?: Pick<OpeningGate, 'pass' | 'left'> | undefined;
  /** Set when other processes write the store, too. */
  readonly witness?: CommitWitness | undefined;
  /** Called when a confirmed commit turns out to be missing. */
  readonly onLost: () => void;
  /** Ends the open turn of the store and returns it; undefined when there is none. */
  readonly closeTurn: () => PendingCommit | undefined;
  readonly onCommitted: (commit: PendingCommit) => void;
  /** Called after each transaction that has written something, with the time that the first turn in it has waited. */
  readonly onFlushed: (ms: number) => void;
  readonly onFatal: (error: Error) => void;
}

/** Space for the writes of a shared turn, claimed before any of them is decided. */
const BYTES_FOR_DECISIONS = 1024 * 1024;

/**
 * A commit that fails for lack of space must not be overtaken by commits that depend on it, so
 * there is only one at a time. Turns that end during it become the next transaction together.
 */
export class CommitQueue {
  room: CommitRoom | undefined;
  readonly #database: RootDatabase<Buffer, StoreKey>;
  readonly #options: CommitQueueOptions;
  #waiting: PendingCommit[] = [];
  #isCommitting = false;
  /** The time at which LMDB got the transaction that it is committing. */
  #givenAt: number | undefined;
  #failure: Error | undefined;

  constructor(database: RootDatabase<Buffer, StoreKey>, options: CommitQueueOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** For how many milliseconds LMDB has had a transaction; 0 when it has none. Waiting for space is not counted. */
  get commitMs(): number {
    return this.#givenAt === undefined ? 0 : performance.now() - this.#givenAt;
  }

  add(commit: PendingCommit): void {
    commit.endedAt = performance.now();
    this.#waiting.push(commit);
    if (!this.#isCommitting) unawaited(this.#commitWaiting(), 'commit-queue: the commits');
  }

  /** Never rejects. */
  async #commitWaiting(): Promise<void> {
    this.#isCommitting = true;
    while (this.#waiting.length > 0) {
      const commits = this.#waiting;
      this.#waiting = [];
      try {
        await this.#issue(commits);
        for (const commit of commits) this.#options.onCommitted(commit);
      } catch (cause) {
        this.#fail(commits, cause);
      }
    }
    this.#isCommitting = false;
  }

  /** Commits the writes of `commits`, and adds the writes of decisions in a shared turn. */
  async #issue(commits: PendingCommit[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    let isShared = false;
    let isEmpty = true;
    for (const { decisions, writes } of commits) {
      if (decisions.length > 0) isShared = true;
      if (writes.size > 0) isEmpty = false;
    }
    if (!isShared && isEmpty) return;
    const bytes = this.room === undefined ? 0 : spaceFor(commits) + (isShared ? BYTES_FOR_DECISIONS : 0);
    for (;;) {
      const space = this.room?.claim(bytes);
      if (space !== undefined) {
        await space;
        continue;
      }
      try {
        const flushing = faultPause('turn.flushing');
        if (flushing !== undefined) await flushing;
        await this.#give(commits, isShared);
        const flushed = faultPause('turn.flushed');
        if (flushed !== undefined) await flushed;
        this.room?.committed();
        if (!isShared || commits.some(({ writes }) => writes.size > 0))
          this.#options.onFlushed(performance.now() - commits[0]!.endedAt);
        return;
      } catch (error) {
        const cause = await commitFailureOf(error);
        // The reads of a shared turn may be outdated as soon as it has lost the lock.
        if (isShared) throw cause;
        const again = this.room?.waitAfter(cause);
        if (again === undefined) throw cause;
        await again;
      }
    }
  }

  async #give(commits: PendingCommit[], isShared: boolean): Promise<void> {
    const { gate, witness } = this.#options;
    for (let opening = gate?.pass(); opening !== undefined; opening = gate?.pass()) await opening;
    this.#givenAt = performance.now();
    try {
      if (witness?.findsLoss()) this.#options.onLost();
      const chosen = witness?.choose(commits);
      if (isShared) await this.#database.transaction(() => this.#decide(commits));
      else await this.#database.batch(() => this.#writeAll(commits));
      witness?.confirm(chosen);
    } finally {
      this.#givenAt = undefined;
      gate?.left();
    }
  }

  /**
   * Makes the decisions within LMDB's write transaction. Earlier writes of this process are written first: the
   * decisions see them, so they must not be committed after them.
   */
  #decide(commits: PendingCommit[]): void {
    const before = this.#options.closeTurn();
    commits.push(...this.#waiting, ...(before === undefined ? [] : [before]));
    this.#waiting = [];
    this.#writeAll(commits);
    for (const { decisions } of commits) for (const decide of decisions) decide();
    const decided = this.#options.closeTurn();
    if (decided === undefined) return;
    commits.push(decided);
    this.#writeAll([decided]);
    faultPoint('turn.shared');
  }

  #writeAll(commits: readonly PendingCommit[]): void {
    for (const { writes } of commits) {
      for (const { key, bytes } of writes.values()) {
        // If this write fails, its batch or transaction fails as well, and `#give` awaits that one.
        // biome-ignore lint/complexity/noVoid: a handler for each written record would cost more than the record.
        void (bytes === undefined ? this.#database.remove(key) : this.#database.put(key, bytes as Buffer));
      }
    }
  }

  #fail(commits: readonly PendingCommit[], cause: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure ??= systemFailure('The store cannot be written', cause);
    for (const { reject } of commits) reject(this.#failure);
    if (isFirst) this.#options.onFatal(this.#failure);
  }
}
