/**
 * `node:fs` for the server of a simulation. Its files are real, and in a folder of its own. Facts about the real machine are
 * missing, because they would differ in each run: `/proc` and `/sys` are not there, and the disk has a constant size, which the
 * world fills now and then.
 */
import * as fs from 'node:fs';
import { type World, world } from '../world/world.ts';
import { diskOf } from './disk.ts';
import { release } from './file-lock.ts';

export * from 'node:fs';

const SYSTEM = /^\/(?:proc|sys)\//;
const BLOCK_BYTES = 4096;
const DISK_BLOCKS = 25_000_000;
/** The free blocks of a full disk. */
const FEW_BLOCKS = 100;

function absent(path: string): Error {
  return Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), {
    code: 'ENOENT',
    errno: -2,
  });
}

/** Refuses the paths of the system; the real function gets all others. */
function withoutSystem<Args extends readonly unknown[], Result>(act: (...args: Args) => Result) {
  return (...args: Args): Result => {
    const [path] = args;
    if (typeof path === 'string' && SYSTEM.test(path)) throw absent(path);
    return act(...args);
  };
}

/** The descriptors that the processes of a world have opened and not closed. */
const opened = new WeakMap<World, Set<number>>();

export const openSync = withoutSystem((...args: Parameters<typeof fs.openSync>) => {
  const descriptor = fs.openSync(...args);
  const own = opened.get(world()) ?? new Set();
  opened.set(world(), own.add(descriptor));
  return descriptor;
});

/** Closes a file. Descriptors that a process has inherited are no files of this world. */
export function closeSync(descriptor: number): void {
  if (opened.get(world())?.delete(descriptor) !== true) return;
  release(descriptor);
  fs.closeSync(descriptor);
}

/** Closes the files that killed processes of a world have left open. */
export function closeAll(of: World): void {
  for (const descriptor of opened.get(of) ?? []) {
    release(descriptor);
    fs.closeSync(descriptor);
  }
  opened.delete(of);
}

/** Sockets in memory have no file, so only their mode cannot be changed. */
const SOCKET = /\.sock$/;

export function chmodSync(path: string, mode: number): void {
  if (!SOCKET.test(path)) fs.chmodSync(path, mode);
}

export const readFileSync = withoutSystem(fs.readFileSync as (...args: unknown[]) => unknown);
export const readdirSync = withoutSystem((...args: unknown[]) => {
  const names = (fs.readdirSync as (...args: unknown[]) => unknown[])(...args);
  return names.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
});

function nameOf(entry: unknown): string {
  return typeof entry === 'object' && entry !== null && 'name' in entry ? String(entry.name) : String(entry);
}

export function statfsSync(): object {
  const free = diskOf(world()).isKnownFull ? FEW_BLOCKS : DISK_BLOCKS;
  return {
    type: 0,
    bsize: BLOCK_BYTES,
    blocks: DISK_BLOCKS,
    bfree: free,
    bavail: free,
    files: 10_000_000,
    ffree: 9_000_000,
  };
}

export default { ...fs, openSync, closeSync, chmodSync, readFileSync, readdirSync, statfsSync };
