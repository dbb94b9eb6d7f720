/** Restores a backup into a data directory that has no store. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { chmod, copyFile, lchown, mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { hasUnfinishedRestore, RESTORING_FILE } from '#storage/disk/store-folder.ts';
import { type Chain, differencesFromChain, fileStateOf, readChain } from './chain.ts';
import { checksumOfCopy, copyStill, flush, hasLinked } from './file-copy.ts';
import { applyPages } from './increment.ts';
import { NODES_FILES, NODES_FOLDER } from './nodes-copy.ts';

export interface RestoreOptions {
  /** The backup. */
  readonly from: string;
  /** The data directory, which must have neither a store nor files of workspaces. */
  readonly dataDir: string;
  /** Leaves out increments that were made later; in milliseconds since 1970. */
  readonly until?: number;
}

/** The result of a restore. */
export interface Restored {
  /** The time of the last increment; the time of the backup when it has no increments. */
  readonly createdAt: string;
  readonly keyIds: readonly string[];
  readonly increments: number;
  readonly files: number;
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Resolves with the result once everything is on disk. The backup and its increments are checked
 * before, and the written files after. No server starts on the remains of an interrupted restore;
 * the next restore removes them. Rejects with `OperatorError`, for example while a server uses the
 * data directory.
 */
export async function restore({ from, dataDir, until }: RestoreOptions): Promise<Restored> {
  const chain = readChain(from, until);
  for await (const difference of differencesFromChain(chain))
    throw new OperatorError(
      `The backup ${from} is damaged: ${difference}.`,
      chain.increments.length === 0
        ? 'Restore another one.'
        : 'Restore another backup, or restore the records from before a damaged increment with --until.',
    );
  const owner = existsSync(dataDir)
    ? statSync(dataDir)
    : { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  using directory = await DataDirectory.claim(dataDir, requireEmpty);
  try {
    await fill(chain, directory, owner);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The backup cannot be restored to ${dataDir}`, error);
  }
  const { createdAt, keyIds } = chain.increments.at(-1)?.manifest ?? chain.base;
  const files = fileStateOf(chain).files.size;
  return { createdAt, keyIds, increments: chain.increments.length, files };
}

function requireEmpty(root: string): void {
  if (hasUnfinishedRestore(root)) return;
  const occupied = [join(root, 'store', 'data.mdb'), join(root, 'workspaces')].find(
    (path) => existsSync(path) && (!statSync(path).isDirectory() || readdirSync(path).length > 0),
  );
  if (occupied === undefined) return;
  throw new OperatorError(
    `${occupied} exists. A backup can only be restored into a data directory that has no store and no files.`,
    'Move it away, or set TROUPE_DATA_DIR to another directory.',
  );
}

/**
 * Creates an empty draft of the store first: no server starts in a directory with a draft. The draft becomes the
 * store when everything else is on disk. If there is a draft already, the files in the directory are the remains of
 * an interrupted restore.
 */
async function fill(chain: Chain, directory: DataDirectory, owner: Owner): Promise<void> {
  const { base, directory: from, increments } = chain;
  const state = fileStateOf(chain);
  const { root, storePath, runPath } = directory;
  const give = giverOf(owner);
  for (const path of [root, storePath, runPath, join(root, 'claim')]) await give(path);
  const workspaces = join(root, 'workspaces');
  const draft = join(storePath, RESTORING_FILE);
  await writeFile(draft, '', { mode: 0o600 });
  await give(draft);
  await flush(storePath);
  await rm(workspaces, { recursive: true, force: true });
  await rm(join(root, NODES_FOLDER), { recursive: true, force: true }); // left by another store
  const made = new Set<string>();
  const makeParent = async (path: string): Promise<void> => {
    for (const folder of foldersOf(dirname(path))) {
      if (made.has(folder)) continue;
      await mkdir(join(root, folder), { recursive: true, mode: 0o700 });
      await give(join(root, folder));
      made.add(folder);
    }
  };
  for (const folder of state.folders) await makeParent(join(placeOf(folder), 'entry'));
  const written = new Set<string>();
  for (const { path, executable, modifiedMs, sha256, sameAs, from: source } of state.files.values()) {
    const place = placeOf(path);
    await makeParent(place);
    const first = sameAs === undefined ? undefined : state.files.get(sameAs);
    // A later increment may have replaced a hard link by another file.
    const isOtherName = first?.from === source && first.sha256 === sha256 && written.has(first.path);
    if (isOtherName && (await hasLinked(join(root, placeOf(first.path)), join(root, place)))) continue;
    const copy = await copyStill(join(source, place), join(root, place), executable);
    requireSame(copy.sha256, sha256, join(root, place));
    if (modifiedMs !== undefined) await utimes(join(root, place), modifiedMs / 1000, modifiedMs / 1000);
    await give(join(root, place));
    written.add(path);
  }
  // Links are made after all files, so that no file is written through a link.
  for (const [path, target] of state.links) {
    const place = placeOf(path);
    await makeParent(place);
    await symlink(target, join(root, place));
    await give(join(root, place));
  }
  if (existsSync(workspaces)) await flush(workspaces);
  await copyFile(join(from, 'store', 'data.mdb'), draft);
  requireSame((await checksumOfCopy(draft)).sha256, base.store.sha256, storePath);
  await chmod(draft, 0o600);
  await applyPages(draft, increments);
  await give(draft);
  await flush(draft);
  await rename(draft, join(storePath, 'data.mdb'));
  await flush(storePath);
}

/** Throws when the file at `path` differs from the file in the backup. */
function requireSame(written: string, expected: string, path: string): void {
  if (written !== expected)
    throw new OperatorError(`${path} has other content than the file in the backup.`, 'Check the disk.');
}

/** Returns a function that gives restored files to the owner of the data directory, if the restore runs as root. */
function giverOf({ uid, gid }: Owner): (path: string) => Promise<void> {
  if (process.getuid?.() !== 0 || uid === 0) return async () => undefined;
  return async (path) => {
    await lchown(path, uid, gid);
  };
}

/**
 * Returns the path of a file below the data directory. Throws when a manifest names a file
 * elsewhere.
 */
function placeOf(path: string): string {
  const place = normalize(join('workspaces', path));
  if (NODES_FILES.some((name) => place === join(NODES_FOLDER, name))) return place;
  if (place.startsWith('workspaces/') && !place.split('/').includes('..')) return place;
  throw new OperatorError(
    `The manifest names a file outside of the backup: ${path}.`,
    'Restore another one.',
  );
}

function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
}
