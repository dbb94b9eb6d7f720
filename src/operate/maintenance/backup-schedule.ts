/**
 * Makes backups of the running server at an interval, adds increments to the latest backup, and deletes all
 * but the newest backups.
 */

import { existsSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { Log } from '#src/base/log/log.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import type { Store } from '#storage/store.ts';
import { type BackupOptions, backUp, draftOf, isDraft } from './backup.ts';
import { type BackupOwner, OWNER_FILE, takeBackupFolder } from './backup-owner.ts';
import { INCREMENTS } from './chain.ts';
import { ChainWriter } from './increment.ts';
import { markStore } from './lineage.ts';

export interface BackupScheduleOptions
  extends Required<Pick<BackupOptions, 'dataDir' | 'copyStore'>>,
    Pick<BackupOptions, 'sealing'> {
  /** The directory of the backups. */
  readonly directory: string;
  /** Returns the id of the store; undefined before its first start is complete. Absent: the folder may belong to any store. */
  readonly storeId?: () => string | undefined;
  readonly everyMs: number;
  /** The number of backups that are kept. */
  readonly keep: number;
  /** Adds the changes to the latest backup; when absent, there are no increments. */
  readonly increments?: { readonly everyMs: number; readonly store: Store };
  /** Whether this process makes the backups: of several workers one does. */
  readonly isResponsible?: () => boolean;
  /**
   * If opening a file in the directory takes longer than this, the directory counts as silent; 30 seconds when
   * absent.
   */
  readonly silentAfterMs?: number;
  /**
   * The clock that decides when increments are due. It never goes back, and counts milliseconds; `performance.now`
   * when absent.
   */
  readonly nowMs?: () => number;
  readonly log: Log;
}

export interface BackupStatus {
  /** Whether the latest attempt at a backup or an increment failed. */
  readonly hasFailed: boolean;
  /** The time at which the newest backup was begun, in milliseconds since 1970; undefined when there is none. */
  readonly newestAtMs: number | undefined;
  /** The duration of the last backup of this process. */
  readonly durationMs: number | undefined;
  readonly everyMs: number;
  /** The time at which the last increment of this process was made, or found unnecessary; undefined before the first. */
  readonly incrementAtMs: number | undefined;
  /** How often an increment is made; undefined when none is. */
  readonly incrementEveryMs: number | undefined;
}

const SILENT_AFTER_MS = 30_000;
/** The file that is opened to see whether the directory responds. */
const PROBE = '.troupe-probe';
const LOOK_EVERY_MS = 60_000;
/**
 * Each time the store is found replaced or set back, the name of the newest backup is added to this list, oldest
 * first. No newer backup has the state of such a backup, so an operator may need it to find the right state by
 * several restores.
 */
const LAST_OF_STORES = 'last-of-replaced-stores.json';
/** The names of scheduled backups; others in the directory are left alone. */
const DRAFT = /^troupe-[\d-]+T[\d-]+Z\.partial-\d+$/;
const NAME = /^troupe-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)Z$/;

export class BackupSchedule implements AsyncDisposable {
  readonly #options: BackupScheduleOptions;
  readonly #timer: NodeJS.Timeout;
  #running: Promise<void> | undefined;
  /** The time since which the directory does not respond; undefined while it does. */
  #silentSinceMs: number | undefined;
  #status: BackupStatus | undefined;
  /** The other store whose backups are in the folder; undefined when there is none. */
  #other: BackupOwner | undefined;
  /** The newest backup, with the writer of its increments. */
  #chain: { readonly name: string; readonly writer: ChainWriter | undefined } | undefined;
  #lastIncrementAt = Number.NEGATIVE_INFINITY;

  constructor(options: BackupScheduleOptions) {
    this.#options = options;
    const everyMs = Math.min(LOOK_EVERY_MS, options.everyMs, options.increments?.everyMs ?? LOOK_EVERY_MS);
    const look = () => {
      unawaited(this.look(), 'backup-schedule: the look for a due backup');
      unawaited(this.#probe(), 'backup-schedule: the look whether the directory responds');
    };
    this.#timer = setInterval(look, everyMs).unref();
    look();
  }

  /**
   * Makes a backup when the newest backup is older than the interval, or an increment when an increment is due. Resolves when it is
   * made, or when nothing is due; never rejects.
   */
  look(): Promise<void> {
    if (this.#options.isResponsible?.() === false) return Promise.resolve();
    this.#running ??= this.#backUpWhenDue().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Returns warnings for operators; empty while backups are made. */
  get warnings(): readonly OperatorWarning[] {
    const silentMs = this.#silentSinceMs === undefined ? 0 : performance.now() - this.#silentSinceMs;
    if (silentMs > (this.#options.silentAfterMs ?? SILENT_AFTER_MS))
      return [
        {
          kind: 'backup_silent',
          text: `The folder of the backups has not responded for ${Math.round(silentMs / 1000)} seconds, so no backup is made. Check ${this.#options.directory} and its disk or network.`,
        },
      ];
    if (this.#other !== undefined && this.#options.isResponsible?.() !== false)
      return [{ kind: 'backup_failed', text: otherOwner(this.#options.directory, this.#other) }];
    if (this.status?.hasFailed !== true) return [];
    return [{ kind: 'backup_failed', text: 'The latest backup could not be made: look into the log.' }];
  }

  /** Undefined while another worker makes the backups, and before the first check. */
  get status(): BackupStatus | undefined {
    return this.#options.isResponsible?.() === false ? undefined : this.#status;
  }

  /**
   * Opens a file in the directory. A file system that hangs, for example because its server is gone, causes no error.
   * A backup would wait for it without a warning. At most one probe waits, because each holds a thread of Node.js'
   * pool.
   */
  async #probe(): Promise<void> {
    const { directory, isResponsible } = this.#options;
    if (this.#silentSinceMs !== undefined || isResponsible?.() === false) return;
    this.#silentSinceMs = performance.now();
    const path = join(directory, PROBE);
    try {
      await (await open(path, 'a')).close();
      await rm(path, { force: true });
    } catch {
      // An error counts as a response of the file system. The next backup reports the error.
    } finally {
      this.#silentSinceMs = undefined;
    }
  }

  async #backUpWhenDue(): Promise<void> {
    const { directory, everyMs, log } = this.#options;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      if (!(await this.#isOwn())) return;
      await this.#removeDrafts();
      const newest = (await this.#names()).at(-1);
      if (newest !== undefined && !isAhead(newest)) this.#note({ newestAtMs: timeOf(newest) });
      const isDue = newest === undefined || isAhead(newest) || Date.now() - timeOf(newest) >= everyMs;
      const chain = isDue ? 'full' : await this.#addIncrementWhenDue(newest);
      if (newest !== undefined && chain === 'replaced') await this.#keepAsLast(newest);
      if (chain !== 'sufficient') await this.#backUp();
      this.#note({ hasFailed: false });
    } catch (error) {
      this.#note({ hasFailed: true });
      log.error({ err: error }, 'a backup could not be made');
    }
  }

  /** Resolves with whether the folder belongs to this store, which takes it if it belongs to none. */
  async #isOwn(): Promise<boolean> {
    const { directory, dataDir, storeId, log } = this.#options;
    const store = storeId?.();
    if (store === undefined) return storeId === undefined || !existsSync(join(directory, OWNER_FILE));
    const before = this.#other;
    this.#other = await takeBackupFolder(directory, { store, dataDir });
    if (this.#other === undefined) return true;
    this.#note({ hasFailed: true });
    if (before === undefined) log.error({ owner: this.#other }, otherOwner(directory, this.#other));
    return false;
  }

  #nowMs(): number {
    return this.#options.nowMs?.() ?? performance.now();
  }

  #note(change: Partial<BackupStatus>): void {
    const { everyMs, increments } = this.#options;
    const unknown = {
      hasFailed: false,
      newestAtMs: undefined,
      durationMs: undefined,
      incrementAtMs: undefined,
    };
    const incrementEveryMs = increments?.everyMs;
    this.#status = { ...unknown, ...this.#status, everyMs, incrementEveryMs, ...change };
  }

  /** Makes a backup, and deletes old backups beyond the number to keep. */
  async #backUp(): Promise<void> {
    const { directory, dataDir, copyStore, sealing, increments, log } = this.#options;
    const startedAt = performance.now();
    const name = `troupe-${new Date().toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
    const mark = increments && { mark: await markStore(increments.store) };
    const { store, files, skipped } = await backUp({
      dataDir,
      to: join(directory, name),
      copyStore,
      sealing,
      ...mark,
    });
    this.#chain = undefined;
    this.#lastIncrementAt = this.#nowMs();
    if (increments !== undefined) this.#note({ incrementAtMs: Date.now() });
    const ms = Math.round(performance.now() - startedAt);
    const count = { files: files.length, leftOut: skipped.length };
    log.info({ backup: name, storeBytes: store.bytes, ...count, ms }, 'a backup was made');
    this.#note({ newestAtMs: timeOf(name), durationMs: ms });
    for (const old of await this.#superseded()) {
      // The backup is renamed first: if the server ended before the deletion is complete, the rest would be taken for a backup.
      const leaving = draftOf(join(directory, old));
      await rename(join(directory, old), leaving);
      await rm(leaving, { recursive: true, force: true });
      log.info({ backup: old }, 'an old backup was deleted');
    }
  }

  /**
   * Resolves with `full` when a new backup is due because the increments are large, and with `replaced` when one is
   * due because the store was replaced or set back.
   */
  async #addIncrementWhenDue(newest: string): Promise<'sufficient' | 'full' | 'replaced'> {
    const { directory, dataDir, sealing, increments, log } = this.#options;
    const startedAt = performance.now();
    const nowMs = this.#nowMs();
    if (increments === undefined || nowMs - this.#lastIncrementAt < increments.everyMs) return 'sufficient';
    const { store } = increments;
    if (this.#chain?.name !== newest) {
      const writer = ChainWriter.open({ directory: join(directory, newest), dataDir, store, sealing });
      this.#chain = { name: newest, writer };
    }
    const { writer } = this.#chain;
    store.refresh();
    if (writer?.canGrow !== true) return writer?.isContinued === true ? 'full' : 'replaced';
    try {
      const added = await writer.add();
      this.#lastIncrementAt = nowMs;
      this.#note({ incrementAtMs: Date.now() });
      const ms = Math.round(performance.now() - startedAt);
      if (added !== undefined)
        log.info({ backup: newest, ...added, ms }, 'an increment was added to the backup');
      return 'sufficient';
    } catch (error) {
      this.#chain = undefined; // another worker may have added an increment
      throw error;
    }
  }

  /** Removes drafts of backups and increments that a crash interrupted. */
  async #removeDrafts(): Promise<void> {
    const { directory } = this.#options;
    const newest = (await this.#names()).at(-1);
    const folder = newest === undefined ? undefined : join(directory, newest, INCREMENTS);
    const drafts = (await readdir(directory)).filter((name) => DRAFT.test(name));
    const left = folder === undefined || !existsSync(folder) ? [] : (await readdir(folder)).filter(isDraft);
    for (const name of drafts) await rm(join(directory, name), { recursive: true, force: true });
    for (const name of left) await rm(join(folder!, name), { recursive: true, force: true });
  }

  /**
   * Resolves with the names of the backups to delete, oldest first. Among backups that were made early, because
   * increments had become large, only one is kept besides the newest. Otherwise a busy hour would push out the
   * backups of days. The last backup of a store that was replaced is kept in addition, as long as other backups of
   * that age are kept.
   */
  async #superseded(): Promise<string[]> {
    const { everyMs, keep } = this.#options;
    const names = await this.#names();
    const lasts = (await this.#lastOfStores()).slice(-keep);
    const kept: string[] = [];
    let early: string | undefined;
    for (const name of names.toReversed()) {
      if (lasts.includes(name) && kept.length < keep) continue;
      const next = kept.at(-1);
      const isEarly = next !== undefined && isSooner(name, next, everyMs);
      if (isEarly) early ??= name;
      else if (kept.length < keep) kept.push(name);
    }
    const oldest = kept.length < keep ? '' : kept.at(-1)!;
    const isLast = (name: string) => lasts.includes(name) && name > oldest;
    return names.filter((name) => name !== early && !kept.includes(name) && !isLast(name));
  }

  async #keepAsLast(name: string): Promise<void> {
    const present = await this.#names();
    const lasts = (await this.#lastOfStores()).filter((last) => last !== name && present.includes(last));
    const path = join(this.#options.directory, LAST_OF_STORES);
    await writeFile(`${path}.new`, JSON.stringify([...lasts, name]), { mode: 0o600, flush: true });
    await rename(`${path}.new`, path);
  }

  async #lastOfStores(): Promise<string[]> {
    try {
      const lasts: unknown = JSON.parse(
        await readFile(join(this.#options.directory, LAST_OF_STORES), 'utf8'),
      );
      return Array.isArray(lasts) ? lasts.filter((name) => typeof name === 'string') : [];
    } catch {
      return []; // there is no backup, or it was changed by hand
    }
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

function otherOwner(directory: string, { host, dataDir }: BackupOwner): string {
  return (
    `No backup is made, because ${directory} has the backups of another store (${dataDir} on ${host}). ` +
    `Set TROUPE_BACKUP_DIR to another folder. If that server no longer makes backups here, delete ${join(directory, OWNER_FILE)}.`
  );
}

/** Returns whether the clock that made the backup was ahead of the present clock. */
function isAhead(name: string): boolean {
  return timeOf(name) > Date.now();
}

/** Returns whether `next` was made before it was due. */
function isSooner(name: string, next: string, everyMs: number): boolean {
  return !isAhead(name) && timeOf(next) - timeOf(name) < everyMs - LOOK_EVERY_MS;
}

function timeOf(name: string): number {
  return Date.parse(name.replace(NAME, '$1T$2:$3:$4Z'));
}
