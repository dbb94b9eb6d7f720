/**
 * The claim on a data directory: a lock on a file in it (core/file-lock.ts). Taking it is atomic, the system releases it with the
 * process however that ends, containers that share the directory share it, and nobody can take it who may not read the
 * directory. Where the native call cannot be had it is a listening abstract socket named for the directory instead, which
 * differs in the last two.
 */
import { createHash } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { loadFileLock } from '#src/core/file-lock.ts';

const FILE = 'claim';

/** `root` is a real path. Resolves when it is ours, until disposed; rejects when another process has the directory. */
export async function takeClaim(root: string): Promise<Disposable> {
  const lock = await loadFileLock();
  if (lock === undefined) return listenFor(root);
  const descriptor = openSync(join(root, FILE), 'a', 0o600);
  if (lock(descriptor)) return { [Symbol.dispose]: () => closeSync(descriptor) };
  closeSync(descriptor);
  throw takenError(root);
}

/** Whether a server has the directory. Leaves nothing behind. */
export async function isClaimed(root: string): Promise<boolean> {
  const lock = await loadFileLock();
  if (lock === undefined) return isListenedFor(root);
  let descriptor: number;
  try {
    descriptor = openSync(join(root, FILE), 'r');
  } catch {
    return false; // there was never a server
  }
  const isFree = lock(descriptor);
  closeSync(descriptor);
  return !isFree;
}

async function listenFor(root: string): Promise<Disposable> {
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE'
          ? takenError(root)
          : new Error(`The data directory ${root} cannot be claimed: ${error.message}`, { cause: error }),
      ),
    );
    server.listen(socketName(root), resolve);
  });
  server.unref();
  return { [Symbol.dispose]: () => server.close() };
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
