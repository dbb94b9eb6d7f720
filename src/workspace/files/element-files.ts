/**
 * The files that pages have sent to elements of notebooks, such as `mo.ui.file`. They are in a hidden folder below
 * the working directory of the workspace's kernels, because kernels can read that directory in every set-up. Each
 * session has a folder of its own there.
 *
 * A file stays until the kernel of its session has read it, or has ended. The kernel removes the files that it reads
 * (`src/confined/python/kernel/element_files.py`). The server removes the others: when a kernel starts, when it ends, and after a crash.
 */
import { randomBytes } from 'node:crypto';
import { opendir, rmdir, unlink } from 'node:fs/promises';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { ELEMENT_FILES } from './file-path.ts';
import type { Folder } from './folder.ts';
import type { WorkspaceFiles } from './workspace-files.ts';

/** marimo's own limit of a file. */
const MAX_FILE_BYTES = 100_000_000;
const ID = /^[0-9a-f]{32}$/;
/** Notebook code may make folders with other names here, which stay. */
const SESSION_ID = /^[A-Za-z0-9_-]{1,100}$/;
/** The most files that one removal names. Files beyond this number stay until the kernel ends. */
export const MAX_REMOVED_FILES = 1_000;
/** Removals work in the thread pool that all workspaces share. One of a workspace is carried out at a time, and workspaces take turns. */
const REMOVALS = {
  width: 2,
  widthOfKey: 1,
  queueOfKey: 32,
  queue: 256,
  refusal: 'Too many removals of files wait already. These files are removed when the kernel ends.',
};
/**
 * How often a write is tried when the folder of the session has vanished. The folder vanishes when its last file is
 * removed.
 */
const MAX_ATTEMPTS = 3;

/** A session whose element gets a file. */
interface ElementFileOwner {
  readonly workspaceId: WorkspaceId;
  readonly sessionId: string;
}

/** A file that arrives. */
export interface ArrivingFile {
  readonly content: AsyncIterable<Uint8Array>;
  /** Aborts when the page leaves: it then does not learn the id of the file. */
  readonly signal: AbortSignal;
  /** Throws when the session does not take files any more. */
  readonly requireOpen: () => unknown;
}

/** Returns the size of the largest file that a page may send to an element: marimo's limit, unless that of all files is lower. */
export function maxElementFileBytes({ maxFileMb }: { readonly maxFileMb: number }): number {
  return Math.min(maxFileMb * 1024 * 1024, MAX_FILE_BYTES);
}

export class ElementFiles {
  readonly #files: Pick<WorkspaceFiles, 'folder' | 'writeAt'>;
  readonly #removals = new FairSemaphore(REMOVALS);

  constructor(files: Pick<WorkspaceFiles, 'folder' | 'writeAt'>) {
    this.#files = files;
  }

  /** Returns the path of the folder of a session's files, below that of the workspace. */
  pathOf(sessionId: string): string {
    return `${ELEMENT_FILES}/${sessionId}`;
  }

  /**
   * Stores a file for a session, and resolves with its id. Rejects as `WorkspaceFiles.write` does, and leaves nothing behind when it
   * rejects.
   */
  async store(owner: ElementFileOwner, { content, signal, requireOpen }: ArrivingFile): Promise<string> {
    const { workspaceId, sessionId } = owner;
    const id = randomBytes(16).toString('hex');
    const place = { names: [ELEMENT_FILES, sessionId], name: id };
    let hasBegun = false;
    async function* noted() {
      hasBegun = true;
      yield* content;
    }
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#files.writeAt(workspaceId, place, noted(), () => {});
        break;
      } catch (error) {
        const hasVanished = error instanceof AppError && error.code === 'stale_update';
        if (!hasVanished || hasBegun || attempt === MAX_ATTEMPTS) throw error;
      }
    }
    try {
      requireOpen(); // a session that was closed meanwhile has removed its files already
      if (signal.aborted) throw pageHasLeft();
    } catch (error) {
      await this.#inFolder(workspaceId, [ELEMENT_FILES, sessionId], (folder) => removeFrom(folder, [id]));
      throw error;
    }
    return id;
  }

  /**
   * Removes files of a session that no value names any more, when it is the workspace's turn. Ignores ids that are
   * not of such files, and ids beyond `MAX_REMOVED_FILES`. Rejects with `unavailable` when too many removals wait. A
   * removal keeps its turn when its page leaves, because pages that end remove their files.
   */
  async remove({ workspaceId, sessionId }: ElementFileOwner, ids: readonly string[]): Promise<void> {
    const known = ids.slice(0, MAX_REMOVED_FILES).filter((id) => ID.test(id));
    if (known.length === 0) return;
    await this.#removals.pass(workspaceId, () =>
      this.#inFolder(workspaceId, [ELEMENT_FILES, sessionId], (folder) => removeFrom(folder, known)),
    );
  }

  /** Removes all files of a session, those that are still arriving included. */
  async clear({ workspaceId, sessionId }: ElementFileOwner): Promise<void> {
    await this.#clear(workspaceId, sessionId, () => false);
  }

  /** Removes the files of all sessions of a workspace, except sessions for which `isInUse` returns true. */
  async sweep(workspaceId: WorkspaceId, isInUse: (sessionId: string) => boolean): Promise<void> {
    await this.#inFolder(workspaceId, [ELEMENT_FILES], async (folder) => {
      for await (const { name } of await opendir(folder.place))
        if (SESSION_ID.test(name)) await this.#clear(workspaceId, name, () => isInUse(name));
    });
  }

  async #clear(workspaceId: WorkspaceId, sessionId: string, isInUse: () => boolean): Promise<void> {
    const isThere = await this.#inFolder(workspaceId, [ELEMENT_FILES, sessionId], async (folder) => {
      for await (const { name } of await opendir(folder.place)) {
        if (isInUse()) return; // the names were read before, so their files are older than the kernel
        await removeFrom(folder, [name]);
      }
    });
    if (!isThere) return;
    await this.#inFolder(workspaceId, [ELEMENT_FILES], (parent) => rmdir(parent.at(sessionId)));
    await this.#inFolder(workspaceId, [], (root) => rmdir(root.at(ELEMENT_FILES)));
  }

  /**
   * Calls `work` with a folder, and resolves with whether it has succeeded. Notebook code can make anything of these folders, so an
   * error of the system is not a fault of the server: the quota counts the files that stay.
   */
  async #inFolder(
    workspaceId: WorkspaceId,
    names: readonly string[],
    work: (folder: Folder) => Promise<unknown>,
  ): Promise<boolean> {
    try {
      await using folder = await this.#files.folder(workspaceId, names);
      await work(folder);
      return true;
    } catch (error) {
      if (typeof Object(error).syscall !== 'string') throw error;
      return false;
    }
  }
}

/** Returns the error of a request whose page has left, which nobody reads. */
export function pageHasLeft(): AppError {
  return new AppError('invalid_request', 'The page disconnected before the file was stored.');
}

/** Removes files by their names. A file that cannot be removed stays. */
async function removeFrom(folder: Folder, names: readonly string[]): Promise<void> {
  for (const name of names) await unlink(folder.at(name)).catch(() => {});
}
