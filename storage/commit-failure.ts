/** Why LMDB could not commit. */
import { errorNameOf } from '#src/base/errors/system-error.ts';

const MAP_FULL = -30792;
/**
 * An earlier operation failed: the transaction was too large for memory, and its pages could not be
 * written.
 */
const BAD_TRANSACTION = -30782;
/** When less space than this is free, a failed write is attributed to a full disk. */
const LITTLE_BYTES = 64 * 1024 * 1024;

/** Resolves with the cause of a rejected commit, which lmdb-js hides in a promise of its own. */
export async function commitFailureOf(error: unknown): Promise<unknown> {
  const { commitError } = { commitError: undefined, ...Object(error) };
  if (!(commitError instanceof Promise)) return error;
  try {
    await commitError;
    return error;
  } catch (cause) {
    return cause;
  }
}

/**
 * Returns whether a commit failed for lack of space, with `freeBytes` left on the disk. LMDB
 * reports a write that the system cuts short on a full disk as an input/output error.
 */
export function isDiskFull(error: unknown, freeBytes: number): boolean {
  const name = errorNameOf(error);
  if (name === 'ENOSPC' || name === 'EDQUOT') return true;
  const { code } = { code: undefined, ...Object(error) };
  if (code === MAP_FULL) return true;
  return (name === 'EIO' || code === BAD_TRANSACTION) && freeBytes < LITTLE_BYTES;
}
