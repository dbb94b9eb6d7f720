/**
 * The files of workspaces, as requests read and write them while notebook code works in the same
 * folder. No file is held in memory as a whole, and nothing outside of the folder is reached: see
 * `folder.ts`.
 */

import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, rename, rmdir, unlink } from 'node:fs/promises';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import type { StateCheck } from '#src/base/errors/refusals.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { FileEntry } from '#src/contract/wire/files.ts';
import { countFiles, type FileCount, type FileIdentity } from './file-count.ts';
import { fileFailure, notAFile } from './file-failure.ts';
import { parseFilePath, UPLOAD_PREFIX } from './file-path.ts';
import { FileQuota, type FileQuotaOptions } from './file-quota.ts';
import { entryOf, fileTag } from './file-record.ts';
import { Folder } from './folder.ts';

/** A file that is open for reading. Its holder closes the handle. */
export interface OpenFile {
  readonly handle: FileHandle;
  readonly size: number;
  readonly etag: string;
}

/** Whether a path exists, and the entity tag if it is a file; links, pipes and devices have none. */
export interface PathState {
  readonly etag: string | undefined;
  readonly isTaken: boolean;
}

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
const FILE_MODE = 0o644;
const COPIED_AT_ONCE_BYTES = 256 * 1024;
/**
 * How many entries are counted at most, unless a quota allows more: some ten seconds of processor
 * time.
 */
const MAX_COUNTED_ENTRIES = 1_000_000;

/**
 * Returns the folder of a workspace. With `isNeeded`, because a file will be written, a missing folder is made.
 */
export type RootOf = (workspaceId: WorkspaceId, isNeeded: boolean) => string;

export class WorkspaceFiles {
  readonly #rootOf: RootOf;
  /**
   * Makes one change of a file at a time. So of two requests with the same condition (`If-Match`), one is refused.
   */
  readonly #changes = new KeyedLock();
  /** The unfinished uploads, by name. A file that is about to be made has no identity yet. */
  readonly #uploads: Uploads = new Map();
  readonly quota: FileQuota;

  constructor(
    rootOf: RootOf,
    quota: Omit<FileQuotaOptions, 'count'> = { maxOf: () => ({ bytes: 0, entries: 0 }) },
  ) {
    this.#rootOf = rootOf;
    this.quota = new FileQuota({
      ...quota,
      count: (workspaceId) => this.#count(workspaceId, quota.maxOf(workspaceId).entries),
    });
  }

  /** Returns whether this entry of a folder belongs to an upload that is under way. */
  isUploading(name: string): boolean {
    return this.#uploads.has(name);
  }

  /**
   * Opens the folder to which these names lead. If `beforeMake` is given, missing folders are made, and it is called
   * before each. Rejects with the system's error.
   */
  folder(
    workspaceId: WorkspaceId,
    names: readonly string[],
    beforeMake?: () => Promise<void>,
  ): Promise<Folder> {
    return Folder.open(this.#rootOf(workspaceId, beforeMake !== undefined), names, beforeMake);
  }

  /** Opens a file for reading. Rejects with `not_found`, or `not_a_file` for anything but a file. */
  async open(workspaceId: WorkspaceId, path: string): Promise<OpenFile> {
    const [names, name] = split(path);
    try {
      await using folder = await this.folder(workspaceId, names);
      const handle = await folder.openEntry(name);
      try {
        const status = await handle.stat({ bigint: true });
        if (!status.isFile()) throw notAFile();
        return { handle, size: Number(status.size), etag: fileTag(status) };
      } catch (error) {
        await handle.close();
        throw error;
      }
    } catch (error) {
      throw fileFailure(error);
    }
  }

  /**
   * Stores a file, in place of an existing one, and makes missing folders. Readers see the old file or the whole new
   * one, and the new one is on disk when this resolves. A link in its place is replaced, not followed.
   */
  write(
    workspaceId: WorkspaceId,
    path: string,
    content: AsyncIterable<Uint8Array>,
    check: StateCheck<PathState>,
  ): Promise<{ entry: FileEntry; isNew: boolean }> {
    const [names, name] = split(path);
    return this.writeAt(workspaceId, { names, name }, content, check);
  }

  /** Stores a file as `write` does, at a place that no request can name. The caller vouches for the names. */
  async writeAt(
    workspaceId: WorkspaceId,
    { names, name }: { readonly names: readonly string[]; readonly name: string },
    content: AsyncIterable<Uint8Array>,
    check: StateCheck<PathState>,
  ): Promise<{ entry: FileEntry; isNew: boolean }> {
    const path = [...names, name].join('/');
    try {
      const found = await this.#status(workspaceId, names, name);
      requireReplaceable(found, check);
      using charge = this.quota.charge(workspaceId);
      await charge.file(found && freedBytes(found));
      await using folder = await this.folder(workspaceId, names, () => charge.folder());
      await using upload = await Upload.begin(folder, this.#uploads);
      for await (const piece of content) {
        await charge.bytes(piece.byteLength);
        await upload.write(piece);
      }
      await upload.sync();
      return await this.#changes.hold(`${workspaceId}/${path}`, async () => {
        const before = await statusIn(folder, name);
        requireReplaceable(before, check);
        const status = await upload.moveTo(name);
        charge.settle(before && freedBytes(before));
        const entry = entryOf(path, status);
        if (entry === undefined) throw notAFile();
        return { entry, isNew: before === undefined };
      });
    } catch (error) {
      throw writeFailure(error);
    }
  }

  /** Returns the record of a file or a folder. Rejects with `not_found`, even for a link. */
  async entry(workspaceId: WorkspaceId, path: string): Promise<FileEntry> {
    const [names, name] = split(path);
    try {
      const status = await this.#status(workspaceId, names, name);
      const entry = status && entryOf(path, status);
      if (entry === undefined) throw notFound();
      return entry;
    } catch (error) {
      throw fileFailure(error);
    }
  }

  /** Makes a folder, and missing folders above it. Rejects with `not_a_file` when there is something at this path. */
  async makeFolder(workspaceId: WorkspaceId, path: string): Promise<FileEntry> {
    const [names, name] = split(path);
    try {
      if ((await this.#status(workspaceId, names, name)) !== undefined) throw taken();
      using charge = this.quota.charge(workspaceId);
      await using folder = await this.folder(workspaceId, [...names, name], () => charge.folder());
      charge.settle(undefined);
      const entry = entryOf(path, await folder.handle.stat({ bigint: true }));
      if (entry === undefined) throw notAFile();
      return entry;
    } catch (error) {
      throw writeFailure(error);
    }
  }

  /**
   * Gives a file or a folder another path, whose folder must exist. Rejects with `not_found`. Rejects with
   * `not_a_file` when there is something at the new path, or when a folder would be moved into itself.
   */
  async move(workspaceId: WorkspaceId, from: string, to: string): Promise<FileEntry> {
    const [fromNames, fromName] = split(from);
    const [toNames, toName] = split(to);
    try {
      return await this.#changes.hold(`${workspaceId}/${to}`, async () => {
        await using source = await this.folder(workspaceId, fromNames);
        await using target = await this.folder(workspaceId, toNames);
        const moved = await lstat(source.at(fromName), { bigint: true });
        if (entryOf(to, moved) === undefined) throw notFound();
        if ((await statusIn(target, toName)) !== undefined) throw taken();
        await rename(source.at(fromName), target.at(toName));
        await target.handle.sync();
        await source.handle.sync();
        const entry = entryOf(to, await lstat(target.at(toName), { bigint: true }));
        if (entry === undefined) throw notFound();
        return entry;
      });
    } catch (error) {
      if (Object(error).code === 'EINVAL') throw notAFile('A folder cannot be moved into itself.');
      throw fileFailure(error);
    }
  }

  /**
   * Stores a copy of a file under another path, within the quota, and makes missing folders. Rejects with `not_found`, with
   * `body_too_large` for a file of more than `maxBytes`, and with `not_a_file` for a folder and when there is something at the new path.
   */
  async copy(
    workspaceId: WorkspaceId,
    from: string,
    to: string,
    { maxBytes, signal }: { readonly maxBytes: number; readonly signal: AbortSignal },
  ): Promise<FileEntry> {
    const { handle, size } = await this.open(workspaceId, from);
    try {
      if (size > maxBytes)
        throw new AppError(
          'body_too_large',
          `The file has more than ${maxBytes} bytes, the limit for copies.`,
        );
      const { entry } = await this.write(workspaceId, to, pieces(handle, size, signal), ({ isTaken }) => {
        if (isTaken) throw taken();
      });
      return entry;
    } finally {
      await handle.close();
    }
  }

  /** Deletes a file, a link or an empty folder. Rejects with `not_found`, and with `not_a_file` for a folder with content. */
  async delete(workspaceId: WorkspaceId, path: string, check: StateCheck<PathState>): Promise<void> {
    const isFolder = path.endsWith('/');
    const [names, name] = split(isFolder ? path.slice(0, -1) : path);
    try {
      await this.#changes.hold(`${workspaceId}/${path}`, async () => {
        await using folder = await this.folder(workspaceId, names);
        const status = await lstat(folder.at(name), { bigint: true });
        check({ etag: status.isFile() ? fileTag(status) : undefined, isTaken: true });
        if (isFolder) await rmdir(folder.at(name));
        else if (status.isDirectory())
          throw notAFile('This is a folder. To delete an empty folder, end the path with a slash.');
        else await unlink(folder.at(name));
        this.quota.release(workspaceId, isFolder ? 0 : freedBytes(status));
        await folder.handle.sync();
      });
    } catch (error) {
      if (Object(error).code === 'ENOTEMPTY') throw notAFile('The folder is not empty.');
      throw fileFailure(error);
    }
  }

  async #count(workspaceId: WorkspaceId, maxEntries: number): Promise<FileCount> {
    let folder: Folder;
    try {
      folder = await this.folder(workspaceId, []);
    } catch (error) {
      if (isMissing(error)) return { bytes: 0, entries: 0, isComplete: true };
      throw error;
    }
    return countFiles(folder, Math.max(MAX_COUNTED_ENTRIES, maxEntries + 1), (name) =>
      this.#uploads.get(name),
    );
  }

  async #status(workspaceId: WorkspaceId, names: readonly string[], name: string) {
    try {
      await using folder = await this.folder(workspaceId, names);
      return await statusIn(folder, name);
    } catch (error) {
      if (isMissing(error)) return undefined; // the folder will be made
      throw error;
    }
  }
}

type Uploads = Map<string, FileIdentity | undefined>;

/**
 * An incomplete file, under a name that no request can use. At its disposal it is removed, unless it was moved to its
 * final name.
 */
class Upload implements AsyncDisposable {
  readonly #folder: Folder;
  readonly #name: string;
  readonly #handle: FileHandle;
  readonly #active: Uploads;
  #isMoved = false;

  private constructor(folder: Folder, name: string, handle: FileHandle, active: Uploads) {
    this.#folder = folder;
    this.#name = name;
    this.#handle = handle;
    this.#active = active;
  }

  static async begin(folder: Folder, active: Uploads): Promise<Upload> {
    const name = `${UPLOAD_PREFIX}${randomBytes(12).toString('hex')}`;
    active.set(name, undefined);
    const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    let handle: FileHandle;
    try {
      handle = await open(folder.at(name), flags, FILE_MODE);
    } catch (error) {
      active.delete(name);
      throw error;
    }
    const upload = new Upload(folder, name, handle, active);
    try {
      const { dev, ino } = await handle.stat({ bigint: true });
      active.set(name, { dev, ino });
      return upload;
    } catch (error) {
      await upload[Symbol.asyncDispose]();
      throw error;
    }
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let offset = 0; offset < piece.byteLength; ) {
      const { bytesWritten } = await this.#handle.write(piece, offset);
      offset += bytesWritten;
    }
  }

  async sync(): Promise<void> {
    await this.#folder.give(this.#handle);
    await this.#handle.sync();
  }

  /** Gives the complete file its final name. Returns its status. */
  async moveTo(name: string): Promise<BigIntStats> {
    await rename(this.#folder.at(this.#name), this.#folder.at(name));
    this.#isMoved = true;
    await this.#folder.handle.sync();
    return this.#handle.stat({ bigint: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
    if (!this.#isMoved) await unlink(this.#folder.at(this.#name)).catch(() => {}); // the file may be gone
    this.#active.delete(this.#name);
  }
}

/** Reads the first `size` bytes of a file, or fewer when it has become shorter. */
async function* pieces(handle: FileHandle, size: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(Math.min(size, COPIED_AT_ONCE_BYTES));
  for (let at = 0; at < size; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.byteLength, size - at), at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

function split(path: string): [readonly string[], string] {
  const names = parseFilePath(path);
  return [names.slice(0, -1), names.at(-1) ?? ''];
}

/** Returns the status of the entry with this name, without following a link; undefined when there is none. */
async function statusIn(folder: Folder, name: string): Promise<BigIntStats | undefined> {
  try {
    return await lstat(folder.at(name), { bigint: true });
  } catch (error) {
    if (Object(error).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns the bytes that will be free on the disk once this name is removed. */
function freedBytes({ blocks, nlink }: BigIntStats): number {
  return nlink > 1n ? 0 : Number(blocks) * 512;
}

function requireReplaceable(status: BigIntStats | undefined, check: StateCheck<PathState>): void {
  if (status?.isDirectory() === true) throw notAFile('There is a folder at this path.');
  check({
    etag: status?.isFile() === true ? fileTag(status) : undefined,
    isTaken: status !== undefined,
  });
}

/**
 * Returns the error for the caller when the system has refused a write. A missing entry means that it was removed
 * during the write.
 */
function writeFailure(error: unknown): unknown {
  const { code } = { code: undefined, ...Object(error) };
  if (error instanceof AppError) return error;
  if (code === 'ENOTDIR' || code === 'ELOOP') return notAFile('A part of the path is not a folder.');
  if (code === 'ENOENT')
    return new AppError(
      'stale_update',
      'The folder was changed while the file was written. Send the file again.',
    );
  return fileFailure(error);
}

function taken(): AppError {
  return notAFile('There is something at this path already.');
}

function isMissing(error: unknown): boolean {
  return Object(error).code === 'ENOENT';
}

/**
 * Runs one operation at a time for each key, in the order of the calls. Stores nothing for unused
 * keys.
 */
class KeyedLock {
  readonly #last = new Map<string, Promise<void>>();

  /** Resolves with the result of `work`, which begins when all earlier work for the key has ended. */
  async hold<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const result = before === undefined ? work() : before.then(work);
    const ended = result.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, ended);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === ended) this.#last.delete(key);
    }
  }
}
