/**
 * `node:fs` for the server of a simulation. Its files are real, and in a folder of its own. Facts about the real machine are
 * missing, because they would differ in each run: `/proc` and `/sys` are not there, and the disk has a constant size, which the
 * world fills now and then.
 */
import * as fs from 'node:fs';
import { world } from '../world/world.ts';
import { diskOf } from './disk.ts';

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

export const openSync = withoutSystem(fs.openSync);
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

export default { ...fs, openSync, readFileSync, readdirSync, statfsSync };
