import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder and those above it that are missing. Throws the system's error. It replaces
 * `mkdirSync` with `recursive`, which never returns below `/proc`: making a folder there fails with
 * ENOENT although its parent exists, so Node.js tries again for ever.
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
    const above = dirname(path);
    if (!isMissing(error) || above === path || statSync(above, { throwIfNoEntry: false }) !== undefined)
      throw error;
    makeFolder(above, mode);
    makeFolder(path, mode);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
