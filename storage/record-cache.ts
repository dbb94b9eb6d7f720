import type { RecordKind } from './codec.ts';

/** Longer records are not kept: they cost more memory than their decoding is worth. */
export const MAX_CACHED_BYTES = 8 * 1024;
export const MAX_CACHED_RECORDS = 512;

interface Cached<V> {
  readonly partition: string;
  readonly bytes: Buffer;
  readonly result: V;
}

/**
 * Results computed from small records of one kind, such as their replies. A result is used again while the stored bytes are the same,
 * so it is as current as a record that was just read, whichever process wrote it. `Store.compute` uses it.
 */
export class RecordCache<T, V> {
  readonly kind: RecordKind<T>;
  /**
   * Computes the result from a record and its last id. The result must not depend on anything else
   * that may change.
   */
  readonly compute: (value: T, id: string) => V;
  /**
   * The key is the last id alone. With a joined key, each read would make a new string and hash it, which takes
   * longer than the look-up.
   */
  readonly #cached = new Map<string, Cached<V>>();

  constructor(kind: RecordKind<T>, compute: (value: T, id: string) => V) {
    this.kind = kind;
    this.compute = compute;
  }

  /** Returns whether there is a result for this record, which may have changed since. */
  has(partition: string, id: string): boolean {
    return this.#cached.get(id)?.partition === partition;
  }

  /** Returns the result that was computed from the first `length` of these bytes; undefined when there is none. */
  find(partition: string, id: string, bytes: Uint8Array, length = bytes.byteLength): V | undefined {
    const cached = this.#cached.get(id);
    if (cached === undefined || cached.partition !== partition) return undefined;
    if (cached.bytes.byteLength !== length) return undefined;
    return cached.bytes.compare(bytes, 0, length) === 0 ? cached.result : undefined;
  }

  /** Keeps a result, in place of the oldest one when there are too many. */
  keep(partition: string, id: string, bytes: Uint8Array, result: V): void {
    if (bytes.byteLength > MAX_CACHED_BYTES) {
      if (this.has(partition, id)) this.#cached.delete(id);
      return;
    }
    if (!this.#cached.has(id) && this.#cached.size >= MAX_CACHED_RECORDS)
      this.#cached.delete(this.#cached.keys().next().value!);
    const kept = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#cached.set(id, { partition, bytes: kept, result });
  }
}
