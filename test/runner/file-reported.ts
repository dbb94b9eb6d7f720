/** Joins the reporter of a lane with its loop: a lane asks for its next file once all tests of the last one were sent. */

const waiting = new Map<string, () => void>();

/** Called by the reporter when the suite of a file has ended. */
export function fileReported(file: string): void {
  const resolve = waiting.get(file);
  waiting.delete(file);
  // The messages before this one are on their way when the loop continues.
  if (resolve !== undefined) queueMicrotask(resolve);
}

/** Resolves when all tests of `file` were reported. To be called before its suite begins. */
export function untilReported(file: string): Promise<void> {
  return new Promise((resolve) => void waiting.set(file, resolve));
}
