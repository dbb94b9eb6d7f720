import { rmSync } from 'node:fs';

/**
 * Removes a folder when its owner ends, or at the end of the process if something still writes to
 * it. Clean-ups run in the order in which they were registered, so a folder is often removed before
 * the server that uses it has stopped. A clean-up that throws prevents the following ones: the
 * server would continue, and its test file would never end.
 */
export function removeAfter(owner: { after(cleanUp: () => Promise<void>): void }, path: string): void {
  owner.after(async () => {
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
    }
  });
}
