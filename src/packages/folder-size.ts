/** The size of a set's folder, and the limit of its growth while an installer fills it. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { PackageFailure } from './package-failure.ts';

/** The bytes that sets of sessions leave of the limit for all sets, `ofBytes`. */
export interface Room {
  readonly bytes: number;
  readonly ofBytes: number;
}

const MIN_PAUSE_MS = 250;
/** The pause between two measurements is at least this many times as long as a measurement takes. */
const PAUSE_FACTOR = 10;
const MIB = 2 ** 20;

/** Resolves with the bytes of the files in the folder, of which each counts once however many names it has there. */
export async function sizeOf(folder: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const status = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined); // it may be gone
    if (status !== undefined) bytes += status.size / Math.max(status.nlink, 1);
  }
  return Math.ceil(bytes);
}

/**
 * Calls `install`, which fills the folder, and resolves with its result. The signal that `install` gets aborts when `left` aborts,
 * and when the folder outgrows the room. In the second case this rejects with a `PackageFailure` that says so.
 */
export async function installWithin<T>(
  room: Room,
  folder: string,
  left: AbortSignal,
  install: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (room.bytes === Number.POSITIVE_INFINITY) return install(left);
  const tooLarge = new AbortController();
  const done = new AbortController();
  const check = async () => {
    if ((await sizeOf(folder)) > room.bytes) tooLarge.abort();
  };
  const watching = repeat(check, done.signal);
  try {
    const installed = await install(AbortSignal.any([left, tooLarge.signal]));
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

/** Repeats the check until the signal aborts. It fails when something that it looks at is removed meanwhile. */
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
    `The packages take more than the ${mib(bytes)} that sessions leave of the ${mib(ofBytes)} for all packages of this server. ` +
      'Ask for fewer packages, close sessions that use others, or have the operator raise TROUPE_PACKAGES_MAX_MB.',
  );
}
