/** Locks on open files that end with the process (flock(2)). Node.js has no function for them. */

const [EXCLUSIVE, AT_ONCE] = [2, 4];

/** Locks the whole file and returns true, or returns false when another descriptor holds the lock. Never waits. */
export type FileLock = (descriptor: number) => boolean;

/** Returns the function that locks, or `undefined` on a machine where flock cannot be called. */
export async function loadFileLock(): Promise<FileLock | undefined> {
  try {
    const { default: koffi } = await import('koffi');
    const flock = koffi.load(null).func('int flock(int, int)');
    return (descriptor) => flock(descriptor, EXCLUSIVE | AT_ONCE) === 0;
  } catch {
    return undefined;
  }
}
