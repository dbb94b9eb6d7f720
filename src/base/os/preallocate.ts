/** Sets disk space aside for a file beyond its end (fallocate(2)). Node.js has no function for it. */

const KEEP_SIZE = 1;

/**
 * Sets aside the bytes from `offset` on, without changing the file's size. Resolves with whether
 * they are set aside now, which fails when the disk is full or the file system cannot do it. Bytes
 * that are set aside already count.
 */
export type Preallocate = (descriptor: number, offset: number, bytes: number) => Promise<boolean>;

/** Returns the function, or `undefined` on a machine where fallocate cannot be called. */
export async function loadPreallocate(): Promise<Preallocate | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    const { default: koffi } = await import('koffi');
    const fallocate = koffi.load(null).func('int fallocate(int, int, int64_t, int64_t)');
    // In a thread: a busy file system can take its time.
    return (descriptor, offset, bytes) =>
      new Promise((resolve) => {
        fallocate.async(descriptor, KEEP_SIZE, offset, bytes, (error: unknown, result: number) =>
          resolve(error === null && result === 0),
        );
      });
  } catch {
    return undefined;
  }
}
