/**
 * Copies files of workspaces. They are not trusted, because notebook code may change them during
 * the copy. No symbolic link is followed, neither as a file nor on the way to one, so nothing from
 * outside of the tree gets into the copy.
 */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, link, mkdir, open, readdir, readlink, stat, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errorNameOf } from '#src/base/errors/system-error.ts';

const CHUNK_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(CHUNK_BYTES);
/**
 * Longer paths are left out: together with the directory of a backup, or of a restored tree, they would be too long
 * for the system.
 */
const MAX_PATH_BYTES = 3072;
/** Deeper folders are left out, because each level takes a file descriptor. */
const MAX_DEPTH = 256;
/**
 * The most bytes of holes that a copy reads for one workspace. (A hole is a part of a sparse file that has no block
 * on the disk.) `MAX_HOLE_SHARE` times the bytes of the blocks is allowed in addition, because some file systems
 * compress. A copy has to read sparse files as a whole, and the quota does not count their holes.
 */
const MAX_HOLE_BYTES = 64 * 1024 ** 3;
const MAX_HOLE_SHARE = 16;
const BLOCK_BYTES = 512; // `stat` counts blocks of this size on every file system

/** File systems distinguish times that differ by more than this; network file systems count whole seconds. */
const SETTLED_MS = 2_000;

/** One file or link of the copy, as the manifest lists it. `path` is relative to the copied tree. */
export interface CopiedFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Whether the owner may execute the file. Other permissions are not kept. */
  readonly executable: boolean;
  /** The time of its last change of content, in milliseconds since 1970. */
  readonly modifiedMs: number;
  /**
   * The time of its last change of content or attributes, by the file system's clock, which no program can set for one file.
   * Missing when that was just before the copy: a later change may then have the same time.
   */
  readonly changedMs?: number;
  /**
   * The path of another name of the same file (a hard link). The copy has one file for both where its file system can: notebook code makes
   * any number of names, and each would take the space of the whole file.
   */
  readonly sameAs?: string;
}

export interface CopiedLink {
  readonly path: string;
  readonly target: string;
}

export interface CopiedTree {
  readonly files: CopiedFile[];
  readonly links: CopiedLink[];
  /** Every folder, because notebooks also need the empty ones. A folder comes before its contents. */
  readonly folders: string[];
  /**
   * Sockets, pipes, devices, files that vanished or could not be read during the copy, names that are not UTF-8,
   * paths that are too deep, and sparse files beyond `MAX_HOLE_BYTES`.
   */
  readonly skipped: string[];
}

/** The files that a backup already has, by path. */
export type KnownFiles = ReadonlyMap<string, CopiedFile>;

/** The copy of a file with several names (hard links), under its first name. */
interface Named {
  readonly file: CopiedFile;
  readonly target: string;
}

interface Tree extends CopiedTree {
  readonly known: KnownFiles | undefined;
  readonly maxHoleBytes: number;
  /** Copied files by device and inode. */
  readonly named: Map<string, Named>;
  /** The bytes read so far of each workspace, by its folder at the top of the tree. */
  readonly read: Map<string, { holeBytes: number; blockBytes: number }>;
}

/**
 * Copies the directory `from` to `to`, which is created. Resolves with the tree once the copies are
 * on disk. With `known`, only changed files are copied: a file that is in `known` and has not
 * changed since keeps its entry from there.
 */
export async function copyTree(
  from: string,
  to: string,
  known?: KnownFiles,
  maxHoleBytes = MAX_HOLE_BYTES,
): Promise<CopiedTree> {
  const tree: Tree = {
    maxHoleBytes,
    files: [],
    links: [],
    folders: [],
    skipped: [],
    known,
    named: new Map(),
    read: new Map(),
  };
  await mkdir(to, { recursive: true, mode: 0o700 });
  const root = await openDirectory(from);
  if (root !== undefined) await copyDirectory(root, to, '', tree);
  const { files, links, folders, skipped } = tree;
  return { files, links, folders, skipped };
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
        // An increment contains only the folders of changed files.
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
  const status = await from.stat();
  if (!status.isFile()) return false;
  const executable = (status.mode & 0o100) !== 0;
  const known = tree.known?.get(shown);
  if (known !== undefined && isSame(known, status, executable)) {
    tree.files.push(known);
    return true;
  }
  if (!mayRead(status, shown, tree)) return false;
  if (tree.known !== undefined) await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const identity = status.nlink > 1 ? await identityOf(from) : undefined;
  const first = identity === undefined ? undefined : tree.named.get(identity);
  if (first !== undefined && (await hasLinked(first.target, target))) {
    tree.files.push({ ...first.file, path: shown, sameAs: first.file.path });
    return true;
  }
  const isSettled = Date.now() - status.ctimeMs > SETTLED_MS && status.ctimeMs <= Date.now();
  const times = { modifiedMs: status.mtimeMs, ...(isSettled ? { changedMs: status.ctimeMs } : {}) };
  // A growing file is copied up to its initial size, so that a continuous writer cannot keep the
  // copy from ending.
  const written = await writeCopy(from, target, { executable, maxBytes: status.size });
  const file = { path: shown, ...written, executable, ...times };
  tree.files.push(file);
  if (identity !== undefined) tree.named.set(identity, { file, target });
  return true;
}

/** Returns whether a file may be read with all its holes; if so, counts the holes. */
function mayRead({ size, blocks }: Stats, path: string, { read, maxHoleBytes }: Tree): boolean {
  const [workspace = ''] = path.split('/', 1);
  const { holeBytes, blockBytes } = read.get(workspace) ?? { holeBytes: 0, blockBytes: 0 };
  const after = {
    holeBytes: holeBytes + Math.max(0, size - blocks * BLOCK_BYTES),
    blockBytes: blockBytes + blocks * BLOCK_BYTES,
  };
  if (after.holeBytes > maxHoleBytes + MAX_HOLE_SHARE * after.blockBytes) return false;
  read.set(workspace, after);
  return true;
}

async function identityOf(file: FileHandle): Promise<string> {
  const { dev, ino } = await file.stat({ bigint: true }); // inodes may be larger than a number holds
  return `${dev} ${ino}`;
}

/** Resolves with whether both paths name one file. */
export async function isSameFile(one: string, other: string): Promise<boolean> {
  const [a, b] = await Promise.all(
    [one, other].map((path) => stat(path, { bigint: true }).catch(() => undefined)),
  );
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}

/** The file system has no hard links, or allows no more for this file. */
const CANNOT_LINK = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Makes `target` another name of a file. Resolves with false where the file system cannot. */
export async function hasLinked(path: string, target: string): Promise<boolean> {
  try {
    await link(path, target);
    return true;
  } catch (error) {
    if (CANNOT_LINK.has(errorNameOf(error) ?? '')) return false;
    throw error;
  }
}

/** Returns the bytes of the files in a copy. A file with several names is counted once. */
export function sizeOf(files: readonly CopiedFile[]): number {
  return files.reduce((sum, { bytes, sameAs }) => (sameAs === undefined ? sum + bytes : sum), 0);
}

function isSame(known: CopiedFile, status: Stats, executable: boolean): boolean {
  const { bytes, changedMs, modifiedMs } = known;
  if (changedMs !== status.ctimeMs || modifiedMs !== status.mtimeMs) return false;
  return bytes === status.size && known.executable === executable;
}

/**
 * Copies a file that no process writes to `target`, which must not exist. Resolves with its size and SHA-256 once it is
 * on disk.
 */
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
  await to.truncate(written.bytes); // a hole at the end of the file was not written
  await to.sync();
  return written;
}

/** Leaves zeros as a hole, so that a sparse file stays sparse. */
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
export async function checksumOfCopy(path: string): Promise<{ bytes: number; sha256: string }> {
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
