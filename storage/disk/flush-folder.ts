import { closeSync, fsyncSync, openSync } from 'node:fs';

/**
 * Flushes the names of the files in a folder. Without this, a power cut may remove a file whose content was flushed.
 */
export function flushFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
