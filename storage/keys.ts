import { invariant } from '#src/base/errors/invariant.ts';

/** Every key is a tuple `[workspaceId, kind, …ids]`. Records that belong to no workspace have `SYSTEM` in place of its id. */
export type StoreKey = [partition: string, kind: string, ...ids: string[]];

/** The partition of records that belong to no workspace. It is not a valid workspace id. */
export const SYSTEM = '*';

/** Sorts after every id in LMDB's key order: keys are UTF-8, which has no byte 0xff. Only for the bounds of ranges. */
const AFTER_EVERY_ID: Uint8Array = new Uint8Array([0xff]);

/** LMDB's limit for an encoded key. Ids are limited to far less, so a longer key is a bug. */
const MAX_KEY_BYTES = 1978;
/** The bytes of a UTF-16 unit in UTF-8. */
const MAX_BYTES_OF_A_UNIT = 3;
const SEPARATOR = '\u0000';

/**
 * Returns the text of a key (see `keyText`) that is to be written. Throws when it is too long: LMDB would refuse the whole
 * commit, including the writes of others.
 */
export function writableKeyText(key: StoreKey): string {
  const text = key.join(SEPARATOR);
  if (text.length * MAX_BYTES_OF_A_UNIT + key.length * 2 <= MAX_KEY_BYTES) return text;
  const bytes = key.reduce((total, part) => total + Buffer.byteLength(part) + 2, 0);
  invariant(bytes <= MAX_KEY_BYTES, 'A key fits into a page of LMDB.', `the kind ${key[1]}, ${bytes} bytes`);
  return text;
}

/** The keys of one kind under a prefix, as bounds for LMDB: `low` (inclusive) to `high` (exclusive). */
export interface KeyRange {
  readonly low: StoreKey;
  readonly high: (string | Uint8Array)[];
}

/** Returns the range of all keys of a kind under `prefix`, for ids of any characters. */
export function rangeOf(partition: string, kind: string, prefix: readonly string[]): KeyRange {
  return { low: [partition, kind, ...prefix], high: [partition, kind, ...prefix, AFTER_EVERY_ID] };
}

/** Returns the range of all keys of a partition. */
export function partitionRange(partition: string): { low: [string]; high: [string, Uint8Array] } {
  return { low: [partition], high: [partition, AFTER_EVERY_ID] };
}

/** Returns a text that identifies the key, for maps in memory. */
export function keyText(key: StoreKey): string {
  return key.join(SEPARATOR);
}
