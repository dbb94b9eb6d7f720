/**
 * The directory that one server owns: `store/` (LMDB), `run/` (sockets), `workspaces/<id>/files/` (working
 * directories of kernels, never deleted), the keyring and `bootstrap.json`. Everything in it is closed to others.
 */
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, realpathSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

export class DataDirectory implements Disposable {
  readonly root: string;
  readonly #claim: Server;

  private constructor(root: string, claim: Server) {
    this.root = root;
    this.#claim = claim;
  }

  /**
   * Makes the directory if it is missing and claims it for this process. Throws when another server has it.
   *
   * The claim is a listening abstract socket named for the directory: taking it is atomic, and the kernel releases it
   * with the process however that ends, so a stale claim cannot exist.
   */
  static async claim(path: string): Promise<DataDirectory> {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
    const root = realpathSync(path);
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(
          error.code === 'EADDRINUSE'
            ? new Error(`Another Troupe server is using the data directory ${root}.`)
            : new Error(`The data directory ${root} cannot be claimed: ${error.message}`, { cause: error }),
        ),
      );
      server.listen(claimName(root), resolve);
    });
    server.unref();
    const directory = new DataDirectory(root, server);
    rmSync(directory.runPath, { recursive: true, force: true }); // sockets of a server that is gone
    for (const sub of [directory.storePath, directory.runPath])
      mkdirSync(sub, { recursive: true, mode: 0o700 });
    return directory;
  }

  /** Whether a server has the directory at `path`, which exists. Changes nothing. */
  static isClaimed(path: string): Promise<boolean> {
    return new Promise((resolve) => {
      const socket = connect(claimName(realpathSync(path)));
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('close', () => socket.destroy());
    });
  }

  get storePath(): string {
    return join(this.root, 'store');
  }
  get runPath(): string {
    return join(this.root, 'run');
  }

  /** The working directory of a workspace's kernels; made on first use. */
  workspaceFiles(workspaceId: string): string {
    const path = join(this.root, 'workspaces', workspaceId, 'files');
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return path;
  }

  [Symbol.dispose](): void {
    this.#claim.close();
  }
}

function claimName(root: string): string {
  return `\0troupe-data-${createHash('sha256').update(root).digest('hex')}`;
}
