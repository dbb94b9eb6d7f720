/**
 * Keeps processes from opening a store while others commit to it.
 *
 * A process that opens an LMDB environment reads the newest transaction's number from the data file and writes it to
 * the lock file, from which the next writer takes it (`mdb_env_open2`), without the lock of writers. If a commit
 * happens between this read and this write, the next commit of any process overwrites it, although it was flushed and
 * acknowledged. A process that opens the store only for reading causes the same loss.
 *
 * So a process opens the store only while it has the gate to itself, and commits only while it has passed the gate.
 * There are two locks of the system (flock), which end with their process. A commit shares the lock of the data file
 * with other commits. A process that opens the store first takes the lock of the directory, through which each commit
 * passes: so no new commit begins, and the opening waits only for those in progress. For a commit this is four system
 * calls, which take 1.6 µs of processor time.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { errorNameOf } from '#src/base/errors/system-error.ts';
import { loadSharedFileLock, type SharedFileLock } from '#src/base/os/file-lock.ts';
import { DATA_FILE } from './store-folder.ts';

const RETRY_MS = 1;
/** Less than the time that a primary gives a new worker, so that the worker can say what it waits for. */
const MAX_WAIT_MS = 50_000;

const BUSY = 'The store cannot be opened now, because another process has been writing to it for too long.';
const ADVICE = 'Check whether its disk hangs or the other process is stopped, then try again.';

/** Descriptors of a store, which its locks are on. */
interface Doors {
  readonly lock: SharedFileLock;
  readonly directory: number;
  readonly file: number;
}

/** The gate for the commits of one process. */
export class OpeningGate implements Disposable {
  #doors: Doors | undefined;

  /** `doors` is undefined on a machine that has no flock: then every commit passes. */
  private constructor(doors: Doors | undefined) {
    this.#doors = doors;
  }

  /**
   * Calls `open`, which opens the store in the directory `path`, once no process commits to it.
   * Resolves with the result of `open`, and the gate for the commits of this process. Waits for
   * commits in progress, which a slow disk may hold for long. Rejects with `OperatorError` after
   * `maxWaitMs`: an opening during a commit could lose that commit after it was acknowledged.
   */
  static async open<T>(
    path: string,
    open: () => T,
    maxWaitMs = MAX_WAIT_MS,
  ): Promise<{ readonly opened: T; readonly gate: OpeningGate }> {
    const lock = await loadSharedFileLock();
    if (lock === undefined) return { opened: open(), gate: new OpeningGate(undefined) };
    const directory = openSync(path, 'r');
    let file: number | undefined;
    try {
      const deadline = performance.now() + maxWaitMs;
      await until(() => lock.own(directory), deadline);
      file = openIfThere(join(path, DATA_FILE));
      const found = file;
      if (found !== undefined) await until(() => lock.own(found), deadline);
      const opened = open();
      // Nobody commits to a store that does not exist yet.
      file ??= openSync(join(path, DATA_FILE), 'r');
      lock.release(file);
      lock.release(directory);
      return { opened, gate: new OpeningGate({ lock, directory, file }) };
    } catch (error) {
      if (file !== undefined) closeSync(file); // which releases its lock
      closeSync(directory);
      throw error;
    }
  }

  /**
   * Returns undefined when a commit may begin; call `left` when the commit has ended. Otherwise returns a promise:
   * once it resolves, the commit has to ask again.
   */
  pass(): Promise<void> | undefined {
    if (this.#doors === undefined) return undefined;
    const { lock, directory, file } = this.#doors;
    if (!lock.share(directory)) return pause(RETRY_MS);
    const isTaken = lock.share(file);
    lock.release(directory);
    return isTaken ? undefined : pause(RETRY_MS);
  }

  /** The commit has ended. */
  left(): void {
    if (this.#doors !== undefined) this.#doors.lock.release(this.#doors.file);
  }

  /**
   * Call it when the store is closed. Idempotent, because the numbers of its descriptors may belong
   * to another file by then.
   */
  [Symbol.dispose](): void {
    const doors = this.#doors;
    this.#doors = undefined;
    if (doors === undefined) return;
    closeSync(doors.file);
    closeSync(doors.directory);
  }
}

/** Resolves when `take` returns true. Rejects with `OperatorError` at the deadline. */
async function until(take: () => boolean, deadline: number): Promise<void> {
  while (!take()) {
    if (performance.now() >= deadline) throw new OperatorError(BUSY, ADVICE);
    await pause(RETRY_MS);
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (errorNameOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}
