/**
 * The claim on a data directory: a lock on a file in it (src/base/os/file-lock.ts). Acquiring it is atomic, the system
 * releases it when the process ends, containers that share the directory see it, and only users with access to the
 * directory can acquire it. Where the native call is not available, a listening abstract socket named for the directory
 * takes its place; containers do not share that, and any local user could block it.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { systemFailure } from '#src/base/errors/operator-error.ts';
import { loadFileLock } from '#src/base/os/file-lock.ts';

const FILE = 'claim';

export interface Claim extends Disposable {
  /**
   * The descriptor that holds the lock. A process that inherits it holds the claim as well. Undefined where a socket
   * takes its place.
   */
  readonly descriptor: number | undefined;
}

/**
 * Claims the directory until the result is disposed, which is idempotent. `root` is a real path. Rejects when another
 * process has claimed it. With `readOnly` no file is made: if it is missing, the directory itself is locked, so that
 * another server that only reads finds it locked.
 */
export async function takeClaim(
  root: string,
  { readOnly = false }: { readonly readOnly?: boolean } = {},
): Promise<Claim> {
  const lock = await loadFileLock();
  if (lock === undefined) return listenFor(root);
  const descriptor = readOnly ? openToRead(root) : openClaim(root);
  if (lock(descriptor)) {
    let isHeld = true;
    return {
      descriptor,
      [Symbol.dispose]() {
        if (isHeld) closeSync(descriptor); // closed once, because another file may already have its number
        isHeld = false;
      },
    };
  }
  closeSync(descriptor);
  throw takenError(root);
}

function openClaim(root: string): number {
  try {
    return openSync(join(root, FILE), 'a', 0o600);
  } catch (error) {
    throw systemFailure(`The data directory ${root} cannot be written`, error);
  }
}

function openToRead(root: string): number {
  const path = join(root, FILE);
  try {
    return openSync(existsSync(path) ? path : root, 'r');
  } catch (error) {
    throw systemFailure(`The data directory ${root} cannot be read`, error);
  }
}

/** Resolves with whether a server has claimed the directory. Does not claim it itself. */
export async function isClaimed(root: string): Promise<boolean> {
  const lock = await loadFileLock();
  if (lock === undefined) return isListenedFor(root);
  let descriptor: number;
  try {
    descriptor = openSync(join(root, FILE), 'r');
  } catch {
    return false; // no server has used this directory yet
  }
  const isFree = lock(descriptor);
  closeSync(descriptor);
  return !isFree;
}

async function listenFor(root: string): Promise<Claim> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? takenError(root)
          : new Error(`The data directory ${root} cannot be claimed: ${error.message}`, { cause: error }),
      ),
    );
    server.listen({ path: socketName(root), exclusive: true }, resolve);
  });
  server.unref();
  return { descriptor: undefined, [Symbol.dispose]: () => server.close() };
}

function isListenedFor(root: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketName(root));
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
  });
}

function socketName(root: string): string {
  return `\0troupe-data-${createHash('sha256').update(root).digest('hex')}`;
}

function takenError(root: string): Error {
  return new Error(`Another Troupe server is using the data directory ${root}.`);
}
