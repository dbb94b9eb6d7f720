import type { RootDatabase } from 'lmdb';
import { DamagedRecord, decodeRecord, problemOf, type RecordKind } from '../codec.ts';
import { partitionRange, rangeOf, type StoreKey } from '../keys.ts';

/** Which entries of a range to return. */
export interface CommittedPage {
  /** Only entries after this id, or before it when `reverse`. The id need not exist. */
  readonly after?: string | undefined;
  /** Only entries up to this id, or down to it when `reverse`. The id need not exist. */
  readonly until?: string | undefined;
  readonly limit: number;
  readonly reverse?: boolean;
}

/** One record of a range; `id` is the last part of its key. */
export interface Entry<T> {
  readonly id: string;
  readonly value: T;
}

/**
 * Reads committed records by range. Uncommitted writes of this process are not among them. A damaged record is reported
 * and left out.
 */
export class CommittedRecords {
  readonly #database: RootDatabase<Buffer, StoreKey>;
  #onDamage: (key: StoreKey, problem: string) => void = () => undefined;

  constructor(database: RootDatabase<Buffer, StoreKey>) {
    this.#database = database;
  }

  /** Calls `report` with the key of every damaged record that is read. */
  onDamage(report: (key: StoreKey, problem: string) => void): void {
    this.#onDamage = report;
  }

  /** Returns the value of a record. Throws `DamagedRecord`, after reporting it, when the bytes are damaged. */
  protected decode<T>(kind: RecordKind<T>, key: StoreKey, bytes: Uint8Array): T {
    try {
      return decodeRecord(kind, bytes);
    } catch (error) {
      if (error instanceof DamagedRecord) this.#onDamage(key, error.message);
      throw error;
    }
  }

  /** Yields the committed records of `kind` under `prefix`, in key order. */
  *list<T>(
    kind: RecordKind<T>,
    partition: string,
    prefix: readonly string[],
    page: CommittedPage,
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
   * Yields the committed records of `kind` under `prefix`, each with all of its ids, after the
   * record with the ids `after` or from the first on. The value of a damaged record is undefined.
   */
  *listAfter<T>(
    kind: RecordKind<T>,
    partition: string,
    prefix: readonly string[],
    after: readonly string[],
  ): Generator<{
    readonly ids: readonly string[];
    readonly value: T | undefined;
    readonly byteLength: number;
  }> {
    for (const { key, value } of this.#database.getRange({
      ...afterIds(kind, partition, prefix, after),
      snapshot: true,
    })) {
      const [, , ...ids] = key;
      yield { ids, value: this.#decodeListed(kind, key, value)?.value, byteLength: value.byteLength };
    }
  }

  /** Returns how many records `listAfter` yields. */
  countKeys(
    kind: RecordKind<unknown>,
    partition: string,
    prefix: readonly string[],
    after: readonly string[],
  ): number {
    return this.#database.getKeysCount(afterIds(kind, partition, prefix, after));
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

  /** Yields the first `limit` committed keys of a partition, of all kinds. Values are not read. */
  listPartition(partition: string, limit: number): Iterable<StoreKey> {
    const { low, high } = partitionRange(partition);
    return this.#database.getKeys({ start: low, end: high, limit });
  }

  /** Yields the committed records of a partition after `after`, or from its first on, with the bytes of their values. */
  *listSizes(
    partition: string,
    after: StoreKey | undefined,
  ): Generator<{ readonly key: StoreKey; readonly bytes: number }> {
    const { low, high } = partitionRange(partition);
    const range = { start: after ?? low, end: high, exclusiveStart: after !== undefined, snapshot: true };
    for (const { key, value } of this.#database.getRange(range)) yield { key, bytes: value.byteLength };
  }

  /** Yields every committed record with its fault, if it has one. Reads all of them. */
  *checkAll(): Generator<{ readonly key: StoreKey; readonly problem: string | undefined }> {
    for (const { key, value } of this.#database.getRange({ snapshot: true }))
      yield { key, problem: problemOf(value) };
  }

  /** Returns the bytes of a committed record as they are, damaged or not. */
  bytesOf(key: StoreKey): Uint8Array | undefined {
    const bytes: unknown = this.#database.get(key);
    return bytes instanceof Uint8Array ? bytes : undefined;
  }

  /** Returns the bytes of a committed record; undefined when it is missing or damaged. */
  soundBytesOf(key: StoreKey): Uint8Array | undefined {
    const bytes = this.bytesOf(key);
    return bytes === undefined || problemOf(bytes) !== undefined ? undefined : bytes;
  }

  #decodeListed<T>(kind: RecordKind<T>, key: StoreKey, bytes: Uint8Array): { readonly value: T } | undefined {
    try {
      return { value: this.decode(kind, key, bytes) };
    } catch (error) {
      if (error instanceof DamagedRecord) return undefined;
      throw error;
    }
  }
}

/** Returns the bounds of the keys of a kind under `prefix`, after the one with the ids `after`, which may be empty. */
function afterIds(
  { name }: RecordKind<unknown>,
  partition: string,
  prefix: readonly string[],
  after: readonly string[],
) {
  const { low, high } = rangeOf(partition, name, prefix);
  const isFirst = after.length === 0;
  return { start: isFirst ? low : [partition, name, ...after], end: high, exclusiveStart: !isFirst };
}
