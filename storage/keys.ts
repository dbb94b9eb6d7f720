/** Every key is a tuple `[workspaceId, kind, …ids]`; what belongs to no workspace lives under `SYSTEM`. */
export type Key = [partition: string, kind: string, ...ids: string[]];

/** Not a valid workspace id, so it can never collide with one. */
export const SYSTEM = '*';

/** Sorts behind every id; no id begins with it, since it is no character. */
export const BEHIND_ALL = '\u{10ffff}';

/** LMDB's limit for an encoded key. Ids are bounded far below; a longer key is a bug. */
const KEY_LIMIT_BYTES = 1978;

/** Throws for a key that LMDB could not take: it would refuse the whole commit, and with it what others wrote. */
export function checkKey(key: Key): Key {
  const bytes = key.reduce((total, part) => total + Buffer.byteLength(part) + 2, 0);
  if (bytes > KEY_LIMIT_BYTES) throw new Error(`A key of the kind ${key[1]} is too long: ${bytes} bytes.`);
  return key;
}

/** One text per key, for maps in memory. */
export function keyText(key: Key): string {
  return key.join('\u0000');
}
