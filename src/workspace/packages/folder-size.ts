/** The size of a set's folder, and the limit of its growth while an installer fills it. */
import { lstat, opendir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { anySignal } from '#src/base/async/any-signal.ts';
import { PackageFailure } from './package-failure.ts';

/**
 * The bytes that are left of the limit for all sets (`ofBytes`) once the sets that sessions use are
 * subtracted.
 */
export interface Room {
  readonly bytes: number;
  readonly ofBytes: number;
}

const MIN_PAUSE_MS = 250;
/** The pause between two measurements is at least this many times as long as a measurement takes. */
const PAUSE_FACTOR = 10;
const MIB = 2 ** 20;

/**
 * Resolves with the bytes of the files in the folders. A file counts once, however many names it
 * has there.
 */
export async function folderSizeOf(...folders: readonly string[]): Promise<number> {
  let bytes = 0;
  const counted = new Set<number>();
  for (const folder of folders)
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const status = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined); // it may be gone
      if (status === undefined || counted.has(status.ino)) continue;
      if (status.nlink > 1) counted.add(status.ino);
      bytes += status.size;
    }
  return bytes;
}

/**
 * Calls `install`, which fills the folder and adds to the cache, and resolves with its result. The
 * signal that `install` gets aborts when `left` aborts, and when the folder and the cache outgrow
 * the room. In the second case this rejects with a `PackageFailure` that says so.
 */
export async function installWithin<T>(
  room: Room,
  folder: string,
  left: AbortSignal,
  install: (signal: AbortSignal) => Promise<T>,
  cache?: string,
): Promise<T> {
  if (room.bytes === Number.POSITIVE_INFINITY) return install(left);
  const tooLarge = new AbortController();
  const done = new AbortController();
  const folders = cache === undefined ? [folder] : [folder, cache];
  const bytesBefore = await folderSizeOf(...folders);
  const check = async () => {
    if ((await folderSizeOf(...folders)) - bytesBefore > room.bytes) tooLarge.abort();
  };
  const watching = repeat(check, done.signal);
  try {
    const installed = await install(anySignal(left, tooLarge.signal));
    await check();
    tooLarge.signal.throwIfAborted();
    return installed;
  } catch (error) {
    throw tooLarge.signal.aborted ? outgrown(room) : error;
  } finally {
    done.abort();
    await watching;
  }
}

/** The size of a folder in which untrusted code writes. */
export interface FolderLimit {
  readonly bytes: number;
  /** Files and folders together. */
  readonly files: number;
}

/**
 * Calls `act`, which fills the folder, and resolves with its result. The signal that `act` gets aborts when `left` aborts, and with
 * `failure` when the folder outgrows the limit.
 */
export async function whileWithin<T>(
  limit: FolderLimit,
  folder: string,
  left: AbortSignal,
  failure: PackageFailure,
  act: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const [tooLarge, done] = [new AbortController(), new AbortController()];
  const check = async () => {
    if (await isLarger(folder, limit)) tooLarge.abort(failure);
  };
  const watching = repeat(check, done.signal);
  try {
    const result = await act(anySignal(left, tooLarge.signal));
    await check();
    if (tooLarge.signal.aborted) throw failure;
    return result;
  } finally {
    done.abort();
    await watching;
  }
}

/** Resolves with whether the folder is larger. Stops looking once the limit is exceeded. */
async function isLarger(folder: string, limit: FolderLimit): Promise<boolean> {
  const [left, folders] = [{ ...limit }, [folder]];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    const entries = await opendir(path).catch(() => []); // it may be gone
    for await (const entry of entries) {
      const inner = join(path, entry.name);
      if (entry.isDirectory()) folders.push(inner);
      else left.bytes -= (await lstat(inner).catch(() => undefined))?.size ?? 0;
      left.files -= 1;
      if (left.bytes < 0 || left.files < 0) return true;
    }
  }
  return false;
}

/**
 * Repeats the check until the signal aborts. A check fails when a file that it looks at is removed
 * during the check.
 */
async function repeat(check: () => Promise<void>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const beganAtMs = performance.now();
    await check().catch(() => {});
    const tookMs = performance.now() - beganAtMs;
    await pause(Math.max(MIN_PAUSE_MS, PAUSE_FACTOR * tookMs), undefined, { signal }).catch(() => {});
  }
}

function outgrown({ bytes, ofBytes }: Room): PackageFailure {
  const mib = (count: number) => `${Math.max(0, Math.floor(count / MIB))} MiB`;
  return new PackageFailure(
    `The packages take more than ${mib(bytes)}. That is what sessions leave of the ${mib(ofBytes)} for all packages of this server. ` +
      'Ask for fewer packages, close sessions with other packages, or let the operator raise TROUPE_PACKAGES_MAX_MB.',
  );
}
