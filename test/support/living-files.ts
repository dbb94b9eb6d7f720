/** Reads the files of a folder that a server changes meanwhile. */
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the contents of all regular files below the folder, by path. A file that was removed while they were read is left out. */
export function filesBelow(folder: string): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (const entry of unlessGone<readonly Dirent[]>(() => readdirSync(folder, { withFileTypes: true })) ??
    []) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) for (const [below, bytes] of filesBelow(path)) found.set(below, bytes);
    if (!entry.isFile()) continue;
    const bytes = unlessGone(() => readFileSync(path));
    if (bytes !== undefined) found.set(path, bytes);
  }
  return found;
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
