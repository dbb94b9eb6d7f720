import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '#src/base/os/make-folder.ts';
import { flushFolder } from './flush-folder.ts';

/** The suffix of a file's draft. */
const DRAFT_END = /^\.[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/**
 * Replaces a file atomically; only its owner can read it. The new content is on disk when this
 * returns. When this throws, the file is unchanged and no temporary file remains. Only one process
 * at a time may write a file. Drafts that killed processes have left are removed, because they
 * contain keys and tokens.
 */
export function writePrivateFile(path: string, text: string): void {
  makeFolder(dirname(path), 0o700);
  removeDrafts(path);
  const draft = `${path}.${randomUUID()}`;
  try {
    writeNew(draft, text);
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  // The rename changes the directory, which has to be flushed too.
  flushFolder(dirname(path));
}

function removeDrafts(path: string): void {
  const [directory, name] = [dirname(path), basename(path)];
  for (const entry of readdirSync(directory))
    if (entry.startsWith(name) && DRAFT_END.test(entry.slice(name.length))) rmSync(join(directory, entry));
}

function writeNew(path: string, text: string): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    // A single write may take only a part of the text without an error, when the disk has no room for all of it.
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
