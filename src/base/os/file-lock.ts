/** Locks on open files that end with the process (flock(2)). Node.js has no function for them. */

const [SHARED, EXCLUSIVE, AT_ONCE, RELEASE] = [1, 2, 4, 8];

/** Locks the whole file and returns true, or returns false when another descriptor holds the lock. Never waits. */
export type FileLock = (descriptor: number) => boolean;

/** Returns the function that locks, or `undefined` on a machine where flock cannot be called. */
export async function loadFileLock(): Promise<FileLock | undefined> {
  const flock = await loadFlock();
  return flock && ((descriptor) => flock(descriptor, EXCLUSIVE | AT_ONCE) === 0);
}

/** Locks that several may share. */
export interface SharedFileLock {
  /** Locks the file together with others. Returns false when another descriptor has locked it exclusively. Never waits. */
  share(descriptor: number): boolean;
  /** Locks the file for this descriptor alone. Returns false when another descriptor holds a lock. Never waits. */
  own(descriptor: number): boolean;
  release(descriptor: number): void;
}

/** Returns the functions that lock, or `undefined` on a machine where flock cannot be called. */
export async function loadSharedFileLock(): Promise<SharedFileLock | undefined> {
  const flock = await loadFlock();
  if (flock === undefined) return undefined;
  return {
    share: (descriptor) => flock(descriptor, SHARED | AT_ONCE) === 0,
    own: (descriptor) => flock(descriptor, EXCLUSIVE | AT_ONCE) === 0,
    release: (descriptor) => {
      flock(descriptor, RELEASE);
    },
  };
}

async function loadFlock(): Promise<((descriptor: number, operation: number) => number) | undefined> {
  try {
    const { default: koffi } = await import('koffi');
    return koffi.load(null).func('int flock(int, int)');
  } catch {
    return undefined;
  }
}
