import { invariant } from '#src/base/errors/invariant.ts';
import { decodeRecord, type EncodedRecord, encodeRecord, type MarkKind, type RecordKind } from './codec.ts';
import type { PendingWrite } from './commit-queue.ts';
import { keyText, type StoreKey, writableKeyText } from './keys.ts';

/** The reads and writes of a `write` callback. `get` sees the callback's own writes. */
export interface Transaction {
  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined;
  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void;
  /** Puts a record that has no value, such as a place in an index. */
  mark(kind: MarkKind, partition: string, ...ids: string[]): void;
  /** Puts a record that `encodeRecord` has made. */
  putEncoded(record: EncodedRecord<unknown>, partition: string, ...ids: string[]): void;
  remove(kind: RecordKind<unknown>, partition: string, ...ids: string[]): void;
}

/** Reads values in the state before this transaction. */
type LatestRecords = Pick<Transaction, 'get'>;

/** In place of the writes of a transaction that was taken: what is written now would be in no commit. */
class NoWrites extends Map<string, PendingWrite> {
  override set(key: string): never {
    invariant(false, 'A transaction writes only until its callback returns.', key);
  }
}
const OVER = new NoWrites();

/**
 * A transaction whose writes are kept here until they are taken. If its callback throws, they are
 * forgotten.
 */
export class StagedTransaction implements Transaction {
  #writes = new Map<string, PendingWrite>();
  readonly #latest: LatestRecords;

  constructor(latest: LatestRecords) {
    this.#latest = latest;
  }

  /** Ends the transaction. Returns the last write of each key, by the text of the key. */
  take(): ReadonlyMap<string, PendingWrite> {
    const writes = this.#writes;
    this.#writes = OVER;
    return writes;
  }

  get<T>(kind: RecordKind<T>, partition: string, ...ids: string[]): T | undefined {
    const own = this.#writes.get(keyText([partition, kind.name, ...ids]));
    if (own === undefined) return this.#latest.get(kind, partition, ...ids);
    return own.bytes === undefined ? undefined : decodeRecord(kind, own.bytes);
  }

  put<T>(kind: RecordKind<T>, value: T, partition: string, ...ids: string[]): void {
    const key: StoreKey = [partition, kind.name, ...ids];
    this.#writes.set(writableKeyText(key), { key, bytes: encodeRecord(kind, value) });
  }

  mark({ name, bytes }: MarkKind, partition: string, ...ids: string[]): void {
    const key: StoreKey = [partition, name, ...ids];
    this.#writes.set(writableKeyText(key), { key, bytes });
  }

  putEncoded({ kind, bytes }: EncodedRecord<unknown>, partition: string, ...ids: string[]): void {
    const key: StoreKey = [partition, kind.name, ...ids];
    this.#writes.set(writableKeyText(key), { key, bytes });
  }

  remove({ name }: RecordKind<unknown>, partition: string, ...ids: string[]): void {
    const key: StoreKey = [partition, name, ...ids];
    this.#writes.set(writableKeyText(key), { key, bytes: undefined });
  }
}
