/** Every key is a tuple `[workspaceId, kind, …ids]`; what belongs to no workspace lives under `SYSTEM`. */
export type Key = [partition: string, kind: string, ...ids: string[]];

/** Not a valid workspace id, so it can never collide with one. */
export const SYSTEM = '*';

/** LMDB's limit for a key. Ids are bounded far below; a longer key is a bug. */
export const KEY_LIMIT_BYTES = 1978;

/** One text per key, for maps in memory. */
export function keyText(key: Key): string {
  return key.join('\u0000');
}
