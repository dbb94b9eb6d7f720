/** Commits the turns of a store, one transaction after the other. */
import type { RootDatabase } from 'lmdb';
import { systemFailure } from '#src/core/operator-error.ts';
import { commitFailureOf } from './commit-failure.ts';
import type { Key } from './keys.ts';
import { BYTES_FOR_A_COMMIT, bytesFor } from './store-extent.ts';

export interface PendingWrite {
  readonly key: Key;
  /** `undefined` removes the record. */
  readonly bytes: Uint8Array | undefined;
}

/** What one turn of the event loop has written, and the promise that its commit settles. */
export class PendingCommit {
  readonly writes = new Map<string, PendingWrite>();
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
  /** Whether there is room only for what frees space or ends something. */
  readonly isFull: boolean;
  /** Takes the space that a commit needs. Returns a promise after which the commit has to ask again, when there is none. */
  claim(bytes: number): Promise<void> | undefined;
  /** Returns a promise after which a commit that failed is to be tried again; undefined when it has failed for good. */
  waitAfter(error: unknown): Promise<void> | undefined;
}

/**
 * A commit that fails for want of space must not be overtaken by those that depend on it, so there is one at a time. Turns
 * that end meanwhile become the next transaction together.
 */
export class CommitQueue {
  room: CommitRoom | undefined;
  readonly #database: RootDatabase<Buffer, Key>;
  readonly #onCommitted: (commit: PendingCommit) => void;
  readonly #onFatal: (error: Error) => void;
  #waiting: PendingCommit[] = [];
  #isCommitting = false;
  #failure: Error | undefined;

  constructor(
    database: RootDatabase<Buffer, Key>,
    onCommitted: (commit: PendingCommit) => void,
    onFatal: (error: Error) => void,
  ) {
    this.#database = database;
    this.#onCommitted = onCommitted;
    this.#onFatal = onFatal;
  }

  add(commit: PendingCommit): void {
    this.#waiting.push(commit);
    if (!this.#isCommitting) void this.#commitWaiting();
  }

  /** Never rejects. */
  async #commitWaiting(): Promise<void> {
    this.#isCommitting = true;
    while (this.#waiting.length > 0) {
      const commits = this.#waiting;
      this.#waiting = [];
      try {
        await this.#issue(commits);
        for (const commit of commits) this.#onCommitted(commit);
      } catch (cause) {
        this.#fail(commits, cause);
      }
    }
    this.#isCommitting = false;
  }

  async #issue(commits: readonly PendingCommit[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    if (commits.every(({ writes }) => writes.size === 0)) return;
    const bytes = this.room === undefined ? 0 : spaceFor(commits);
    for (;;) {
      const space = this.room?.claim(bytes);
      if (space !== undefined) {
        await space;
        continue;
      }
      try {
        await this.#database.batch(() => this.#writeAll(commits));
        this.room?.committed();
        return;
      } catch (error) {
        const cause = await commitFailureOf(error);
        const again = this.room?.waitAfter(cause);
        if (again === undefined) throw cause;
        await again;
      }
    }
  }

  #writeAll(commits: readonly PendingCommit[]): void {
    for (const { writes } of commits) {
      for (const { key, bytes } of writes.values()) {
        if (bytes === undefined) void this.#database.remove(key);
        else void this.#database.put(key, bytes as Buffer);
      }
    }
  }

  #fail(commits: readonly PendingCommit[], cause: unknown): void {
    const isFirst = this.#failure === undefined;
    this.#failure ??= systemFailure('The store cannot be written', cause);
    for (const { reject } of commits) reject(this.#failure);
    if (isFirst) this.#onFatal(this.#failure);
  }
}

function spaceFor(commits: readonly PendingCommit[]): number {
  let bytes = BYTES_FOR_A_COMMIT;
  for (const { writes } of commits)
    for (const write of writes.values()) bytes += bytesFor(write.bytes?.byteLength);
  return bytes;
}
