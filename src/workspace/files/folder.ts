/**
 * Folders of a workspace, opened step by step. Notebook code owns the workspace's folder and can replace anything in
 * it with a link at any moment. So the system never gets a path of more than one name: each step opens one name in a
 * folder that is already open, and follows no link. Node.js has no `openat`; on Linux `/proc/self/fd/N/name` is the
 * same. Elsewhere kernels are not confined, and the path of the folder is used instead.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
/** Opens only a reference to a file, so that a pipe or a device is not affected. Node.js has no name for this flag. */
const O_PATH = 0o10000000;
const HAS_DESCRIPTOR_PATHS = process.platform === 'linux';
const FOLDER_MODE = 0o755;

export class Folder implements AsyncDisposable {
  readonly handle: FileHandle;
  /** The path to which the names of entries are appended. */
  readonly #place: string;

  private constructor(handle: FileHandle, path: string) {
    this.handle = handle;
    this.#place = HAS_DESCRIPTOR_PATHS ? `/proc/self/fd/${handle.fd}` : path;
  }

  /**
   * Opens the folder to which `names` lead from `root`. Only the server can replace `root` itself. With `beforeMake`,
   * missing folders are made; it is called before each and must resolve. Rejects with the system's error when there
   * is no such folder, or a link is on the way.
   */
  static async open(
    root: string,
    names: readonly string[],
    beforeMake?: () => Promise<void>,
  ): Promise<Folder> {
    let folder = new Folder(await open(root, O_RDONLY | O_DIRECTORY), root);
    for (const name of names) {
      const parent = folder;
      try {
        folder = await parent.#enterOrMake(name, beforeMake);
      } finally {
        await parent[Symbol.asyncDispose]();
      }
    }
    return folder;
  }

  /** Returns the path of an entry. The caller must not follow a link there. */
  at(name: string): string {
    return `${this.#place}/${name}`;
  }

  /** Returns the path of an entry whose name need not be text. */
  atBytes(name: Uint8Array): Buffer {
    return Buffer.concat([Buffer.from(`${this.#place}/`), name]);
  }

  /** Returns the path of the folder itself, for listing it. */
  get place(): string {
    return this.#place;
  }

  /**
   * Opens an entry for reading. May reject with `EISDIR`, `ELOOP` or `ENXIO` for an entry that is not a file; the
   * caller still checks that it is one. Opening never waits for the other end of a pipe, and does nothing to a
   * device.
   */
  async openEntry(name: string): Promise<FileHandle> {
    if (!HAS_DESCRIPTOR_PATHS) return open(this.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const place = await open(this.at(name), O_PATH | O_NOFOLLOW);
    try {
      const status = await place.stat();
      if (!status.isFile()) throw Object.assign(new Error('not a file'), { code: 'EISDIR' });
      return await open(`/proc/self/fd/${place.fd}`, O_RDONLY | O_NONBLOCK);
    } finally {
      await place.close();
    }
  }

  /**
   * Makes the owner of this folder, which may be the kernels' user, the owner of an entry that the server made in it.
   */
  async give(made: FileHandle): Promise<void> {
    if (process.getuid?.() !== 0) return;
    const { uid, gid } = await this.handle.stat();
    if (uid !== 0) await made.chown(uid, gid);
  }

  /** Opens the folder in this one that has the name. Rejects with the system's error. */
  async enter(name: string | Uint8Array): Promise<Folder> {
    const path = typeof name === 'string' ? this.at(name) : this.atBytes(name);
    const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    return new Folder(handle, path.toString());
  }

  async #enterOrMake(name: string, beforeMake: (() => Promise<void>) | undefined): Promise<Folder> {
    try {
      return await this.enter(name);
    } catch (error) {
      if (beforeMake === undefined || Object(error).code !== 'ENOENT') throw error;
    }
    await beforeMake();
    let isNew = true;
    await mkdir(this.at(name), { mode: FOLDER_MODE }).catch((error: unknown) => {
      if (Object(error).code !== 'EEXIST') throw error;
      isNew = false;
    });
    const folder = await this.enter(name);
    if (!isNew) return folder;
    await this.give(folder.handle);
    await this.handle.sync();
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.handle.close();
  }
}
