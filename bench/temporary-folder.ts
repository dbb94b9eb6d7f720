import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A new folder below the system's folder for temporary files. */
export interface TemporaryFolder {
  readonly path: string;
  /** Removes the folder with its content. Idempotent. */
  remove(): void;
}

/**
 * Makes a folder that is removed at the end of this process at the latest, even if a signal ends
 * the process.
 */
export function temporaryFolder(name: string): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), `troupe-bench-${name}-`));
  const remove = () => {
    process.off('exit', remove);
    rmSync(path, { recursive: true, force: true, maxRetries: 5 });
  };
  process.on('exit', remove);
  return { path, remove };
}
