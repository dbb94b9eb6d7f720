/**
 * Notices that the last commit of this process is missing from the store although LMDB has confirmed it. LMDB itself
 * can lose a commit when several processes use a store: a write transaction that begins from the state before the
 * commit overwrites it (`opening-gate.ts` explains how). No number in the data file shows that afterwards.
 *
 * So one record of each commit is its witness: a record that the commit has changed. If it has its former bytes again at
 * the next commit, the commit is gone, with everything in it. Other processes may have changed the record further, but
 * not back: records carry times and counts. A commit that only adds and removes records has no witness. This costs two
 * reads for a commit, and no write: a mark in a record of its own made small commits a quarter slower.
 */
import type { RootDatabase } from 'lmdb';
import type { StoreKey } from './keys.ts';

/** Larger records are not compared. */
const MAX_BYTES = 4096;
/** The most records that are tried in search of one that existed before the commit. */
const MAX_TRIES = 4;

/** The part of a commit from which a witness is chosen. */
interface WrittenCommit {
  readonly writes: ReadonlyMap<string, { readonly key: StoreKey; readonly bytes: Uint8Array | undefined }>;
}

interface Witness {
  readonly key: StoreKey;
  readonly before: Buffer;
}

export class CommitWitness {
  readonly #database: Pick<RootDatabase<Buffer, StoreKey>, 'getBinary' | 'resetReadTxn'>;
  #witness: Witness | undefined;

  constructor(database: Pick<RootDatabase<Buffer, StoreKey>, 'getBinary' | 'resetReadTxn'>) {
    this.#database = database;
  }

  /** Returns whether the last confirmed commit is missing. Reports each loss once. */
  findsLoss(): boolean {
    const witness = this.#witness;
    this.#witness = undefined;
    if (witness === undefined || !this.#isAsBefore(witness)) return false;
    this.#database.resetReadTxn(); // this turn's reads may have begun before the last commit
    return this.#isAsBefore(witness);
  }

  /** Returns a witness of these commits before they are made, for `confirm`; undefined when there is none. */
  choose(commits: readonly WrittenCommit[]): Witness | undefined {
    let tries = 0;
    for (const { writes } of commits) {
      for (const { key, bytes } of writes.values()) {
        if (bytes === undefined || bytes.byteLength > MAX_BYTES) continue;
        if (++tries > MAX_TRIES) return undefined;
        const before = this.#database.getBinary(key);
        if (before !== undefined && !before.equals(bytes)) return { key, before: Buffer.from(before) };
      }
    }
    return undefined;
  }

  /** Notes that LMDB has confirmed the commits from which this witness was chosen. */
  confirm(witness: Witness | undefined): void {
    this.#witness = witness;
  }

  #isAsBefore({ key, before }: Witness): boolean {
    return this.#database.getBinary(key)?.equals(before) === true;
  }
}
