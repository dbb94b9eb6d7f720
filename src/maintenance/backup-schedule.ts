/** Backups that a server makes of itself, at an interval, keeping the newest ones. */
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '#src/core/log.ts';
import { type BackupOptions, backUp, draftOf } from './backup.ts';

export interface BackupScheduleOptions extends Required<Pick<BackupOptions, 'dataDir' | 'copyStore'>> {
  /** The directory of the backups. */
  readonly directory: string;
  readonly everyMs: number;
  /** How many backups are kept. */
  readonly keep: number;
  /** Whether it is for this process to make them: of several workers one does. */
  readonly isResponsible?: () => boolean;
  readonly log: Log;
}

const LOOK_EVERY_MS = 60_000;
/** The names of scheduled backups; others in the directory are left alone. */
const DRAFT = /^troupe-[\d-]+T[\d-]+Z\.partial-\d+$/;
const NAME = /^troupe-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z$/;

export class BackupSchedule implements AsyncDisposable {
  readonly #options: BackupScheduleOptions;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | undefined;
  #hasFailed = false;

  constructor(options: BackupScheduleOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), Math.min(LOOK_EVERY_MS, options.everyMs)).unref();
    void this.look();
  }

  /** Makes a backup when the newest one is older than the interval. Resolves when that is done, or not to be; never rejects. */
  look(): Promise<void> {
    if (this.#options.isResponsible?.() === false) return Promise.resolve();
    this.#running ??= this.#backUpWhenDue().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Returns what an operator should know; empty while backups are made. */
  get warnings(): readonly string[] {
    return this.#hasFailed ? ['The latest backup could not be made: look into the log.'] : [];
  }

  async #backUpWhenDue(): Promise<void> {
    const { directory, everyMs, keep, dataDir, copyStore, log } = this.#options;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await this.#removeDrafts();
      const newest = (await this.#names()).at(-1);
      if (newest !== undefined && !isAhead(newest) && Date.now() - timeOf(newest) < everyMs) {
        this.#hasFailed = false;
        return;
      }
      const startedAt = performance.now();
      const name = `troupe-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
      const { store, files, skipped } = await backUp({ dataDir, to: join(directory, name), copyStore });
      const ms = Math.round(performance.now() - startedAt);
      const count = { files: files.length, leftOut: skipped.length };
      log.info({ backup: name, storeBytes: store.bytes, ...count, ms }, 'a backup was made');
      this.#hasFailed = false;
      for (const old of (await this.#names()).slice(0, -keep)) {
        // Under its name it would be taken for a backup if the server ended before it is deleted.
        const leaving = draftOf(join(directory, old));
        await rename(join(directory, old), leaving);
        await rm(leaving, { recursive: true, force: true });
        log.info({ backup: old }, 'an old backup was deleted');
      }
    } catch (error) {
      this.#hasFailed = true;
      log.error({ err: error }, 'a backup could not be made');
    }
  }

  /** Removes what a backup left behind that a crash interrupted. */
  async #removeDrafts(): Promise<void> {
    const { directory } = this.#options;
    for (const name of await readdir(directory))
      if (DRAFT.test(name)) await rm(join(directory, name), { recursive: true, force: true });
  }

  /**
   * Returns the names, oldest first. Backups that were made while the clock was ahead come before the others, because otherwise they
   * would be kept as the newest ones.
   */
  async #names(): Promise<string[]> {
    const names = (await readdir(this.#options.directory)).filter((name) => NAME.test(name)).sort();
    return [...names.filter(isAhead), ...names.filter((name) => !isAhead(name))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** Returns whether the backup was made by a clock that was ahead of the clock of now. */
function isAhead(name: string): boolean {
  return timeOf(name) > Date.now();
}

function timeOf(name: string): number {
  return Date.parse(name.replace(NAME, '$1T$2:$3:$4Z'));
}
