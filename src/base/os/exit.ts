/** The end of this process where `process.exit` would wait. */

/**
 * Ends the process at once with an exit code, without handlers and without waiting for threads. `process.exit` waits for the threads
 * of Node.js' pool, and one of them may be in a call that never returns, such as a write to a file system whose server is gone.
 * Returns only if the system's function cannot be called; the caller then uses `process.exit`.
 */
export async function exitAtOnce(code: number): Promise<void> {
  try {
    const { default: koffi } = await import('koffi');
    koffi.load(null).func('void _exit(int)')(code);
  } catch {
    // Not on this platform.
  }
}
