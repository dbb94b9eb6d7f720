/** Locks on open files that end with the process (flock(2)), which Node.js does not offer. */

const [EXCLUSIVE, AT_ONCE] = [2, 4];

/** Whether the whole file is locked for this descriptor now; false when another one has it. Never waits. */
export type FileLock = (descriptor: number) => boolean;

/** Resolves with undefined where the native call cannot be had. */
export async function loadFileLock(): Promise<FileLock | undefined> {
  try {
    const { default: koffi } = await import('koffi');
    const flock = koffi.load(null).func('int flock(int, int)');
    return (descriptor) => flock(descriptor, EXCLUSIVE | AT_ONCE) === 0;
  } catch {
    return undefined;
  }
}
