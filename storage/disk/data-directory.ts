/**
 * The directory that one server owns: `store/` (LMDB), `run/` (sockets), `packages/` (which can be made again), `workspaces/<id>/files/` (working directories of
 * kernels, never deleted), the keyring, `bootstrap.json` and `claim`. Only the server's user can read any of it.
 */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemFailure } from '#src/base/errors/operator-error.ts';
import { makeFolder } from '#src/base/os/make-folder.ts';
import { type Claim, isClaimed, takeClaim } from './directory-claim.ts';

export class DataDirectory implements Disposable {
  readonly root: string;
  readonly #claim: Claim | undefined;
  /** The folder of sockets outside of the directory; undefined when it is in the directory. */
  readonly #ownRunPath: string | undefined;

  private constructor(root: string, claim: Claim | undefined, ownRunPath?: string) {
    this.root = root;
    this.#claim = claim;
    this.#ownRunPath = ownRunPath;
  }

  /**
   * Creates the directory if it is missing and claims it for this process. Rejects with one line when another server has
   * claimed it, when the system refuses, or when `check`, which gets the claimed directory, throws.
   */
  static async claim(path: string, check: (root: string) => void = () => undefined): Promise<DataDirectory> {
    const root = attempt(path, 'cannot be created', () => {
      makeFolder(path, 0o700);
      chmodSync(path, 0o700);
      return realpathSync(path);
    });
    const directory = new DataDirectory(root, await takeClaim(root));
    try {
      check(root);
      attempt(root, 'cannot be written', () => {
        // The sockets of an earlier server, and the copy of an interrupted compaction.
        for (const sub of [directory.runPath, directory.compactingPath])
          rmSync(sub, { recursive: true, force: true });
        for (const sub of [directory.storePath, directory.runPath])
          mkdirSync(sub, { recursive: true, mode: 0o700 });
      });
      return directory;
    } catch (error) {
      directory[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Claims the directory, which must exist, for a server that only reads. Nothing in it is changed, so it may be on a full disk or a
   * read-only one; the sockets are in a private folder below the system's temporary one. Rejects as `claim` does.
   */
  static async claimToRead(path: string, check: (root: string) => void): Promise<DataDirectory> {
    const root = attempt(path, 'cannot be read', () => realpathSync(path));
    const claim = await takeClaim(root, { readOnly: true });
    try {
      check(root);
      const runPath = attempt(tmpdir(), 'cannot have a folder', () => mkdtempSync(join(tmpdir(), 'troupe-')));
      return new DataDirectory(root, claim, runPath);
    } catch (error) {
      claim[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Returns the directory that the parent process has claimed. This process has inherited the
   * claim.
   */
  static inherited(path: string): DataDirectory {
    return new DataDirectory(realpathSync(path), undefined);
  }

  /** Resolves with whether a server has claimed the directory, which must exist. Changes nothing. */
  static isClaimed(path: string): Promise<boolean> {
    return isClaimed(realpathSync(path));
  }

  /** The descriptor that holds the claim, for processes that must hold it as well; undefined when none can. */
  get claimDescriptor(): number | undefined {
    return this.#claim?.descriptor;
  }

  get storePath(): string {
    return join(this.root, 'store');
  }
  get runPath(): string {
    return this.#ownRunPath ?? join(this.root, 'run');
  }

  /** The folder in which the compacted copy of the store is made. */
  get compactingPath(): string {
    return join(this.root, 'store-compacting');
  }

  /** The folder of installed packages. */
  get packagesPath(): string {
    return join(this.root, 'packages');
  }

  /** Returns where the files of a workspace are, or would be. */
  workspaceFilesPath(workspaceId: string): string {
    return join(this.root, 'workspaces', workspaceId, 'files');
  }

  /** Returns the working directory of a workspace's kernels, which it creates if it is missing. */
  workspaceFiles(workspaceId: string): string {
    const path = this.workspaceFilesPath(workspaceId);
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return path;
  }

  [Symbol.dispose](): void {
    if (this.#ownRunPath !== undefined) rmSync(this.#ownRunPath, { recursive: true, force: true });
    this.#claim?.[Symbol.dispose]();
  }
}

function attempt<T>(path: string, failure: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw systemFailure(`The data directory ${path} ${failure}`, error);
  }
}
