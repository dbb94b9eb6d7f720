// A stamp is a file that records from which sources a directory was made. The stamp lies inside that directory, so both are deleted
// together. A step writes its stamp last, so an interrupted step leaves none.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Returns a stamp, or undefined when there is none. */
export function readStamp(path) {
  return readIfPresent(path)?.trim();
}

/** Writes a stamp atomically. */
export function writeStamp(path, stamp) {
  writeFileSync(`${path}.new`, `${stamp}\n`);
  renameSync(`${path}.new`, path);
}

/** Returns the text of a file, or undefined when it does not exist. */
export function readIfPresent(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** Returns the SHA-256 of the texts. */
export function digest(...texts) {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(text).update('\0');
  return hash.digest('hex');
}

/** Returns a digest of the paths, sizes and times of files. It changes when a file is added, removed or written. */
export function fingerprint(root, files) {
  return digest(
    ...files.map((file) => {
      const stat = statSync(join(root, file), { throwIfNoEntry: false });
      return stat === undefined ? `${file} missing` : `${file} ${stat.size} ${stat.mtimeMs}`;
    }),
  );
}

/** The folder of Python's compiled files. Kernels of root make it readable for root alone. */
const COMPILED = '__pycache__';

/** Returns all files below `folder` whose names end in `suffix`, relative to `root` and sorted. */
export function filesBelow(root, folder, suffix) {
  const found = [];
  const visit = (path) => {
    for (const entry of readdirSync(join(root, path), { withFileTypes: true })) {
      const below = `${path}/${entry.name}`;
      if (entry.isDirectory()) {
        if (entry.name !== COMPILED) visit(below);
      } else if (entry.name.endsWith(suffix)) found.push(below);
    }
  };
  if (statSync(join(root, folder), { throwIfNoEntry: false })?.isDirectory()) visit(folder);
  return found.sort();
}
