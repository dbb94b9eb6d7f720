/**
 * The files of workspaces, as requests read and write them while notebook code works in the same folder. Nothing is held in
 * memory as a whole, and nothing outside of the folder is reached: see `folder.ts`.
 */

import { randomBytes } from 'node:crypto';
import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, lstat, open, rename, rmdir, unlink } from 'node:fs/promises';
import { AppError } from '#src/core/errors.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { StateCheck } from '#src/core/refusals.ts';
import type { FileEntry } from '#src/wire/files.ts';
import { countFiles, type FileCount } from './file-count.ts';
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

/** Whether there is anything at a path, and the entity tag if it is a file: links, pipes and devices have none. */
export interface PathState {
  readonly etag: string | undefined;
  readonly isTaken: boolean;
}

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
const FILE_MODE = 0o644;
/** How many entries are counted at most, if no quota asks for more: some ten seconds of processor time. */
const MAX_COUNTED_ENTRIES = 1_000_000;

/** Returns the folder of a workspace. It is made if it is missing, provided that something is to be written into it. */
export type RootOf = (workspaceId: WorkspaceId, isNeeded: boolean) => string;

export class WorkspaceFiles {
  readonly #rootOf: RootOf;
  /** One change of a file at a time, so that of two requests with the same condition one is refused. */
  readonly #changes = new KeyedLock();
  readonly #uploads = new Set<string>();
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

  /** Returns whether this entry of a folder is of an upload that is under way. */
  isUploading(name: string): boolean {
    return this.#uploads.has(name);
  }

  /**
   * Opens the folder that these names lead to. Missing folders are made if `beforeMake` is given, which is called before each.
   * Rejects with the system's error.
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
  async write(
    workspaceId: WorkspaceId,
    path: string,
    content: AsyncIterable<Uint8Array>,
    check: StateCheck<PathState>,
  ): Promise<{ entry: FileEntry; isNew: boolean }> {
    const [names, name] = split(path);
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
          throw notAFile('This is a folder: a slash at its end deletes it, once it is empty.');
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
    return countFiles(folder, {
      maxEntries: Math.max(MAX_COUNTED_ENTRIES, maxEntries + 1),
      isLeftOut: (name) => this.isUploading(name),
    });
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

/** A file under a name that no request can use, until all of it is there. It is removed unless it was moved. */
class Upload implements AsyncDisposable {
  readonly #folder: Folder;
  readonly #name: string;
  readonly #handle: FileHandle;
  readonly #active: Set<string>;
  #isMoved = false;

  private constructor(folder: Folder, name: string, handle: FileHandle, active: Set<string>) {
    this.#folder = folder;
    this.#name = name;
    this.#handle = handle;
    this.#active = active;
  }

  static async begin(folder: Folder, active: Set<string>): Promise<Upload> {
    const name = `${UPLOAD_PREFIX}${randomBytes(12).toString('hex')}`;
    active.add(name);
    try {
      const flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
      return new Upload(folder, name, await open(folder.at(name), flags, FILE_MODE), active);
    } catch (error) {
      active.delete(name);
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

  /** Gives the file its name, for good. Returns its status. */
  async moveTo(name: string): Promise<BigIntStats> {
    await rename(this.#folder.at(this.#name), this.#folder.at(name));
    this.#isMoved = true;
    await this.#folder.handle.sync();
    return this.#handle.stat({ bigint: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
    if (!this.#isMoved) await unlink(this.#folder.at(this.#name)).catch(() => {}); // notebook code may have removed it
    this.#active.delete(this.#name);
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

/** Returns the bytes that are free on the disk once this name is gone. */
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
 * Returns the meaning of a refusal of the system for a write: an entry that it needs can be missing only when it was
 * removed meanwhile.
 */
function writeFailure(error: unknown): unknown {
  const { code } = { code: undefined, ...Object(error) };
  if (error instanceof AppError) return error;
  if (code === 'ENOTDIR' || code === 'ELOOP') return notAFile('A part of the path is not a folder.');
  if (code === 'ENOENT')
    return new AppError('stale_update', 'The folder was changed while the file was written. Send it again.');
  return fileFailure(error);
}

function isMissing(error: unknown): boolean {
  return Object(error).code === 'ENOENT';
}

/** Does one thing at a time for each key, in the order of the calls. Keeps nothing of a key that nobody uses. */
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
