// Stamps say for what state of its sources something was made. They lie inside what they describe, so whoever deletes
// that deletes the stamp with it, and they are written last, so an interrupted step leaves none.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Undefined when there is none. */
export function readStamp(path) {
  return readIfPresent(path)?.trim();
}

export function writeStamp(path, stamp) {
  writeFileSync(`${path}.new`, `${stamp}\n`);
  renameSync(`${path}.new`, path);
}

/** The file's text, or undefined when it does not exist. */
export function readIfPresent(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

export function digest(...texts) {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(text).update('\0');
  return hash.digest('hex');
}

/** Changes whenever one of the files is added, removed or written: made of paths, sizes and times. */
export function fingerprint(root, files) {
  return digest(
    ...files.map((file) => {
      const stat = statSync(join(root, file), { throwIfNoEntry: false });
      return stat === undefined ? `${file} missing` : `${file} ${stat.size} ${stat.mtimeMs}`;
    }),
  );
}

/** All files below `folder` whose names end in `suffix`, as paths relative to `root`, sorted. */
export function filesBelow(root, folder, suffix) {
  const found = [];
  const visit = (path) => {
    for (const entry of readdirSync(join(root, path), { withFileTypes: true })) {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) visit(below);
      else if (entry.name.endsWith(suffix)) found.push(below);
    }
  };
  if (statSync(join(root, folder), { throwIfNoEntry: false })?.isDirectory()) visit(folder);
  return found.sort();
}
