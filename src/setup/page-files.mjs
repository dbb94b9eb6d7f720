// Writes the files of a web page, which the server serves as src/http/page-files.ts describes.
import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns a name for the content, which changes when the content does. */
export function named(name, ending, content) {
  return `${name}-${createHash('sha256').update(content).digest('hex').slice(0, 8).toUpperCase()}.${ending}`;
}

/**
 * Replaces the folder as a whole, so that a server that starts meanwhile finds all files of one build. `scripts` has the hash of
 * the inline script of each file that has one, by the name of the file.
 */
export function writePage(folder, files, scripts = {}) {
  const work = `${folder}.new`;
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  for (const [name, content] of files) writeFileSync(join(work, name), content);
  const listed = Object.fromEntries([...files.keys()].map((name) => [name, scripts[name] ?? null]));
  writeFileSync(join(work, 'files.json'), JSON.stringify(listed));
  rmSync(folder, { recursive: true, force: true });
  renameSync(work, folder);
}
