/**
 * Counts the space that the files of a workspace take on the disk while notebook code works in them. Links are not
 * followed: see `folder.ts`. Names are read as bytes, because notebook code can make names that are not text.
 */
import type { Dir } from 'node:fs';
import { lstat, opendir } from 'node:fs/promises';
import type { Folder } from './folder.ts';

/** The space and the number of the files of a workspace. */
export interface FileCount {
  /** The space that the file system has allocated for the files, as `du` counts it, in whole units of 512 bytes. */
  readonly bytes: number;
  /** Files, folders, and everything else with a name. */
  readonly entries: number;
  /**
   * False when something was left out: a folder that is too deep or cannot be read, or entries
   * beyond `maxEntries`.
   */
  readonly isComplete: boolean;
}

/**
 * Returns the file that the server writes under this name, which is left out. Another file with the name counts: notebook code can
 * give it to anything.
 */
type UploadOf = (name: string) => FileIdentity | undefined;

/** Identifies a file without its name. */
export interface FileIdentity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** Each open level of folders takes two descriptors. */
const MAX_DEPTH = 64;
/** How many files the thread pool is asked about at the same time. */
const FILES_AT_ONCE = 16;
const NAMES_AT_ONCE = 256;
const SECTOR_BYTES = 512;

/** Resolves with the count of `folder` and the folders in it, up to `maxEntries`. Takes ownership of `folder`. */
export async function countFiles(folder: Folder, maxEntries: number, uploadOf: UploadOf): Promise<FileCount> {
  const count = new Count(maxEntries, uploadOf);
  await count.enter(folder, 1);
  return { bytes: Math.ceil(count.bytes), entries: count.entries, isComplete: count.isComplete };
}

class Count {
  readonly #maxEntries: number;
  readonly #uploadOf: UploadOf;
  bytes = 0;
  entries = 0;
  isComplete = true;

  constructor(maxEntries: number, uploadOf: UploadOf) {
    this.#maxEntries = maxEntries;
    this.#uploadOf = uploadOf;
  }

  async enter(opened: Folder, depth: number): Promise<void> {
    await using folder = opened;
    let files: string[] = [];
    const count = async () => {
      const sizes = await Promise.all(files.map((name) => allocatedBytes(folder, name)));
      this.bytes = sizes.reduce((sum, size) => sum + size, this.bytes);
      files = [];
    };
    for await (const { name, isFolder, isFile } of this.#entriesOf(folder)) {
      if (isFolder) await this.#enterInto(folder, name, depth);
      else if (isFile) files.push(name);
      if (files.length === FILES_AT_ONCE) await count();
      if (this.entries >= this.#maxEntries) {
        this.isComplete = false;
        break;
      }
    }
    await count();
  }

  async *#entriesOf(folder: Folder) {
    let names: Dir;
    try {
      names = await opendir(folder.place, { encoding: 'latin1', bufferSize: NAMES_AT_ONCE });
    } catch {
      this.isComplete = false;
      return;
    }
    for await (const entry of names) {
      if (await this.#isUpload(folder, entry.name)) continue;
      this.entries++;
      yield { name: entry.name, isFolder: entry.isDirectory(), isFile: entry.isFile() };
    }
  }

  async #isUpload(folder: Folder, name: string): Promise<boolean> {
    const upload = this.#uploadOf(name);
    if (upload === undefined) return false;
    try {
      const { dev, ino } = await lstat(folder.at(name), { bigint: true });
      return dev === upload.dev && ino === upload.ino;
    } catch {
      return true; // the file was removed, or has its final name now
    }
  }

  async #enterInto(folder: Folder, name: string, depth: number): Promise<void> {
    if (depth === MAX_DEPTH) {
      this.isComplete = false;
      return;
    }
    const inner = await folder.enter(Buffer.from(name, 'latin1')).catch((error: unknown) => {
      if (!isGone(error)) this.isComplete = false;
      return undefined;
    });
    if (inner !== undefined) await this.enter(inner, depth + 1);
  }
}

/**
 * Returns the share of the file's space that counts for one of its names; all names have equal
 * shares. Returns 0 when the file no longer exists.
 */
async function allocatedBytes(folder: Folder, name: string): Promise<number> {
  try {
    const { blocks, nlink } = await lstat(folder.atBytes(Buffer.from(name, 'latin1')));
    return (blocks * SECTOR_BYTES) / Math.max(nlink, 1);
  } catch {
    return 0;
  }
}

/** Returns whether the entry with this name no longer exists, or is no longer a folder. */
function isGone(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR', 'ELOOP'].includes(Object(error).code);
}
