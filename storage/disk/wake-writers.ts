/**
 * Lets the writers of a store continue after one of them was killed.
 *
 * LMDB's write lock is a robust mutex in its lock file. A thread that unlocks it wakes one waiting
 * thread, and that one wakes the next. Suppose that the process of the woken thread is killed
 * before the thread has run, and another thread takes the lock in between. The system then sees
 * nothing to repair, and the other threads sleep on although the lock is free.
 */
import { join } from 'node:path';
import { loadFutexWake } from '#src/base/os/futex-wake.ts';
import { LOCK_FILE } from './store-folder.ts';

/** The head of the lock file, which contains the locks. The place of the locks in it is not documented. */
const HEAD_BYTES = 256;

/**
 * Resolves with a function that wakes all processes that wait for a lock of the store in the directory `path`; call it
 * when a process that wrote the store has ended. It does nothing where the system has no such call.
 */
export async function loadWakeWriters(path: string): Promise<() => void> {
  const wake = await loadFutexWake();
  return () => wake?.(join(path, LOCK_FILE), HEAD_BYTES);
}
