import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Puts the names of the files in a folder on disk: a flushed file whose name was not flushed may be gone after a power cut. */
export function flushFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
