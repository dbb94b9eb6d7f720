/**
 * Copies files of workspaces, which notebook code writes meanwhile and which are not trusted: no symbolic link is followed,
 * neither as a file nor on the way to one, so that nothing from outside of the tree gets into the copy.
 */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorNameOf } from '#src/core/system-error.ts';

const CHUNK_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
/** Longer paths are left out: with the directory of a backup, or of a restored tree, the system would not take them. */
const MAX_PATH_BYTES = 3072;
/** Deeper folders are left out, because each level takes a file descriptor. */
const MAX_DEPTH = 256;
/** File systems tell times apart that differ by more than this; network file systems count whole seconds. */
const SETTLED_MS = 2_000;

/** One file or link of the copy, as the manifest lists it. `path` is relative to the copied tree. */
export interface CopiedFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The permissions of the owner that matter: whether it can be executed. */
  readonly executable: boolean;
  /** When it was written last, in milliseconds since 1970. Backups of earlier releases lack it. */
  readonly modifiedMs?: number;
  /**
   * When it or its attributes were changed last, by the file system's clock, which nobody can set for one file. Missing when that was
   * just before the copy: a later change may then have the same time.
   */
  readonly changedMs?: number;
}

export interface CopiedLink {
  readonly path: string;
  readonly target: string;
}

export interface CopiedTree {
  readonly files: CopiedFile[];
  readonly links: CopiedLink[];
  /** Every folder, because notebooks also need those that are empty. A folder comes before what is in it. */
  readonly folders: string[];
  /**
   * Sockets, pipes, devices, what vanished or could not be read while it was copied, names that are not UTF-8, and what lies too
   * deep.
   */
  readonly skipped: string[];
}

/** What a backup has already, by path. */
export type KnownFiles = ReadonlyMap<string, CopiedFile>;

interface Tree extends CopiedTree {
  readonly known: KnownFiles | undefined;
}

/**
 * Copies the directory `from` to `to`, which is created. Resolves with the tree; the copies are on disk then. With `known`, the
 * copy has changed files only: one that is known and has not changed since is listed as it is there.
 */
export async function copyTree(from: string, to: string, known?: KnownFiles): Promise<CopiedTree> {
  const tree: Tree = { files: [], links: [], folders: [], skipped: [], known };
  await mkdir(to, { recursive: true, mode: 0o700 });
  const root = await openDirectory(from);
  if (root !== undefined) await copyDirectory(root, to, '', tree);
  const { known: _, ...copied } = tree;
  return copied;
}

/** Takes ownership of `directory`. */
async function copyDirectory(directory: FileHandle, to: string, path: string, tree: Tree): Promise<void> {
  await using opened = directory;
  const inside = `/proc/self/fd/${opened.fd}`;
  for (const entry of await readdir(inside, { withFileTypes: true })) {
    const [source, target, shown] = [join(inside, entry.name), join(to, entry.name), join(path, entry.name)];
    if (!isCopied(entry.name, shown)) tree.skipped.push(shown);
    else if (entry.isDirectory()) {
      const child = await openDirectory(source);
      if (child === undefined) tree.skipped.push(shown);
      else {
        // An increment has the folders of changed files only.
        if (tree.known === undefined) await mkdir(target, { mode: 0o700 });
        tree.folders.push(shown);
        await copyDirectory(child, target, shown, tree);
      }
    } else if (entry.isSymbolicLink()) {
      const link = await readlink(source).catch(() => undefined);
      if (link === undefined) tree.skipped.push(shown);
      else {
        if (tree.known === undefined) await symlink(link, target);
        tree.links.push({ path: shown, target: link });
      }
    } else if (!entry.isFile() || !(await copyFile(source, target, shown, tree))) tree.skipped.push(shown);
  }
}

function isCopied(name: string, path: string): boolean {
  // Node.js replaces bytes that are not UTF-8 with this character, so two such names can become the same.
  if (name.includes('\ufffd')) return false;
  return Buffer.byteLength(path) <= MAX_PATH_BYTES && path.split('/').length <= MAX_DEPTH;
}

async function openDirectory(path: string): Promise<FileHandle | undefined> {
  return openUnlessGone(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

async function copyFile(source: string, target: string, shown: string, tree: Tree): Promise<boolean> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const input = await openUnlessGone(source, flags);
  if (input === undefined) return false;
  await using from = input;
  const stat = await from.stat();
  if (!stat.isFile()) return false;
  const executable = (stat.mode & 0o100) !== 0;
  const known = tree.known?.get(shown);
  if (known !== undefined && isSame(known, stat, executable)) {
    tree.files.push(known);
    return true;
  }
  if (tree.known !== undefined) await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const isSettled = Date.now() - stat.ctimeMs > SETTLED_MS && stat.ctimeMs <= Date.now();
  const times = { modifiedMs: stat.mtimeMs, ...(isSettled ? { changedMs: stat.ctimeMs } : {}) };
  // A file that grows is copied as far as it went: a writer who does not stop must not keep the copy from ending.
  const written = await writeCopy(from, target, { executable, maxBytes: stat.size });
  tree.files.push({ path: shown, ...written, executable, ...times });
  return true;
}

function isSame(known: CopiedFile, stat: Stats, executable: boolean): boolean {
  const { bytes, changedMs, modifiedMs } = known;
  if (changedMs !== stat.ctimeMs || modifiedMs !== stat.mtimeMs) return false;
  return bytes === stat.size && known.executable === executable;
}

/** Copies a file that nobody writes to `target`, which must not exist. Resolves with its size and SHA-256 once it is on disk. */
export async function copyStill(
  source: string,
  target: string,
  executable: boolean,
): Promise<{ bytes: number; sha256: string }> {
  await using from = await open(source, constants.O_RDONLY | constants.O_NOFOLLOW);
  return await writeCopy(from, target, { executable });
}

async function writeCopy(
  from: FileHandle,
  target: string,
  { executable, maxBytes }: { readonly executable: boolean; readonly maxBytes?: number },
): Promise<{ bytes: number; sha256: string }> {
  await using to = await open(target, 'wx', executable ? 0o700 : 0o600);
  const written = await pour(from, maxBytes, (part, at) => writeAll(to, part, at));
  await to.truncate(written.bytes); // what was not written at its end is a hole
  await to.sync();
  return written;
}

/** Zeros become a hole, so that a file which is larger than what it takes of the disk stays so. */
async function writeAll(to: FileHandle, part: Buffer, at: number): Promise<void> {
  if (part.equals(ZEROS.subarray(0, part.length))) return;
  // A single write may take only a part, without an error, when there is no room for all of it.
  for (let done = 0; done < part.length; ) {
    const { bytesWritten } = await to.write(part, done, part.length - done, at + done);
    done += bytesWritten;
  }
}

async function pour(
  from: FileHandle,
  maxBytes = Number.POSITIVE_INFINITY,
  take: (part: Buffer, at: number) => Promise<void> = async () => undefined,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await from.read(chunk, 0, Math.min(CHUNK_BYTES, maxBytes - bytes), bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
    const part = chunk.subarray(0, bytesRead);
    hash.update(part);
    await take(part, bytes);
    bytes += bytesRead;
  }
}

/** Resolves with size and SHA-256 of a file. */
export async function checksumOf(path: string): Promise<{ bytes: number; sha256: string }> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  return await pour(file);
}

/** Flushes a file or directory to disk. */
export async function flush(path: string): Promise<void> {
  await using file = await open(path, 'r');
  await file.sync();
}

const GONE = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EACCES', 'ENXIO']);

async function openUnlessGone(path: string, flags: number): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (error) {
    if (GONE.has(errorNameOf(error) ?? '')) return undefined;
    throw error;
  }
}
