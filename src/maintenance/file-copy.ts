/**
 * Copies files of workspaces, which notebook code writes meanwhile and which are not trusted: no symbolic link is followed,
 * neither as a file nor on the way to one, so that nothing from outside of the tree gets into the copy.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { errorNameOf } from '#src/core/system-error.ts';

const CHUNK_BYTES = 256 * 1024;

/** One file or link of the copy, as the manifest lists it. `path` is relative to the copied tree. */
export interface CopiedFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** The permissions of the owner that matter: whether it can be executed. */
  readonly executable: boolean;
}

export interface CopiedLink {
  readonly path: string;
  readonly target: string;
}

export interface CopiedTree {
  readonly files: CopiedFile[];
  readonly links: CopiedLink[];
  /** Sockets, pipes, devices, and what vanished or could not be read while it was copied. */
  readonly skipped: string[];
}

/** Copies the directory `from` to `to`, which is created. Resolves with what was copied; `to` is on disk then. */
export async function copyTree(from: string, to: string): Promise<CopiedTree> {
  const tree: CopiedTree = { files: [], links: [], skipped: [] };
  await mkdir(to, { recursive: true, mode: 0o700 });
  const root = await openDirectory(from);
  if (root === undefined) return tree;
  await copyDirectory(root, to, '', tree);
  return tree;
}

/** Takes ownership of `directory`. */
async function copyDirectory(
  directory: FileHandle,
  to: string,
  path: string,
  tree: CopiedTree,
): Promise<void> {
  await using opened = directory;
  const inside = `/proc/self/fd/${opened.fd}`;
  for (const entry of await readdir(inside, { withFileTypes: true })) {
    const [source, target, shown] = [join(inside, entry.name), join(to, entry.name), join(path, entry.name)];
    if (entry.isDirectory()) {
      const child = await openDirectory(source);
      if (child === undefined) tree.skipped.push(shown);
      else {
        await mkdir(target, { mode: 0o700 });
        await copyDirectory(child, target, shown, tree);
      }
    } else if (entry.isSymbolicLink()) {
      const link = await readlink(source).catch(() => undefined);
      if (link === undefined) tree.skipped.push(shown);
      else {
        await symlink(link, target);
        tree.links.push({ path: shown, target: link });
      }
    } else if (!entry.isFile() || !(await copyFile(source, target, shown, tree))) tree.skipped.push(shown);
  }
}

async function openDirectory(path: string): Promise<FileHandle | undefined> {
  return openUnlessGone(path, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

async function copyFile(source: string, target: string, shown: string, tree: CopiedTree): Promise<boolean> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const input = await openUnlessGone(source, flags);
  if (input === undefined) return false;
  await using from = input;
  const stat = await from.stat();
  if (!stat.isFile()) return false;
  const executable = (stat.mode & 0o100) !== 0;
  await using to = await open(target, 'wx', executable ? 0o700 : 0o600);
  const { bytes, sha256 } = await pour(from, to);
  await to.sync();
  tree.files.push({ path: shown, bytes, sha256, executable });
  return true;
}

async function pour(from: FileHandle, to?: FileHandle): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await from.read(chunk, 0, CHUNK_BYTES, bytes);
    if (bytesRead === 0) return { bytes, sha256: hash.digest('hex') };
    const part = chunk.subarray(0, bytesRead);
    hash.update(part);
    await to?.write(part, 0, bytesRead, bytes);
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
