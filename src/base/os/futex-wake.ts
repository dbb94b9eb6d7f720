/** Wakes threads that wait for locks which lie in a file that processes share (futex(2)). Node.js has no function for it. */
import { closeSync, openSync } from 'node:fs';

/** The number of the system call, for which the C library has no function. */
const SYS_FUTEX: Readonly<Partial<Record<NodeJS.Architecture, number>>> = { x64: 202, arm64: 98 };
const FUTEX_WAKE = 1;
const EVERYBODY = 0x7fffffff;
const [PROT_READ, MAP_SHARED] = [1, 1];
const FAILED = 2n ** 64n - 1n;
/** Mappings are made of whole pages. */
const PAGE_BYTES = 4096;
const WORD_BYTES = 4;

/**
 * Wakes every process that waits for a lock in the first `bytes` (at most 4,096) of a file. Each process then
 * checks its lock again, so an unneeded call does no harm. Does nothing when there is no such file.
 */
export type FutexWake = (file: string, bytes: number) => void;

/** Returns the function, or `undefined` on a machine where futex cannot be called. */
export async function loadFutexWake(): Promise<FutexWake | undefined> {
  const number = process.platform === 'linux' ? SYS_FUTEX[process.arch] : undefined;
  if (number === undefined) return undefined;
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load(null);
    const mmap = library.func('uintptr_t mmap(uintptr_t, size_t, int, int, int, int64_t)');
    const munmap = library.func('int munmap(uintptr_t, size_t)');
    const futex = library.func('long syscall(long, uintptr_t, int, int)');
    return (file, bytes) => {
      const descriptor = openIfThere(file);
      if (descriptor === undefined) return;
      const mapped = BigInt(mmap(0, PAGE_BYTES, PROT_READ, MAP_SHARED, descriptor, 0));
      closeSync(descriptor);
      if (mapped === FAILED) return;
      for (let offset = 0; offset < bytes; offset += WORD_BYTES)
        futex(number, mapped + BigInt(offset), FUTEX_WAKE, EVERYBODY);
      munmap(mapped, PAGE_BYTES);
    };
  } catch {
    return undefined;
  }
}

function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, 'r');
  } catch {
    return undefined;
  }
}
