/**
 * The space that the files of each workspace take, and their quota. Bytes that requests store are charged at once;
 * bytes that notebook code writes are found by counting. Before a request is refused, the files are counted again, so
 * that recent deletions are noticed. The new count is skipped if the last one took long, so that counting takes at
 * most a tenth of the time.
 */

import { setTimeout as pause } from 'node:timers/promises';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { blocksOf, Charge, type ChargedAccount, type Need } from './file-charge.ts';
import type { FileCount } from './file-count.ts';

export interface FileQuotaOptions {
  /** Returns the limits for the files of a workspace. */
  readonly maxOf: (workspaceId: WorkspaceId) => FileMaximum;
  /** Counts the files, without uploads under way. */
  readonly count: (workspaceId: WorkspaceId) => Promise<FileCount>;
  /**
   * Called when a count finds that a workspace is over its quota, and when one finds that it no
   * longer is.
   */
  readonly onChange?: (workspaceId: WorkspaceId, usage: FileUsage, isOver: boolean) => void;
  /** Called with each count that this process made. */
  readonly onCounted?: (workspaceId: WorkspaceId, counted: CountedFiles) => void;
}

/** The most that the files of a workspace may take, in bytes and in entries (files and folders); 0 means no limit. */
export interface FileMaximum {
  readonly bytes: number;
  readonly entries: number;
}

/** A count that has just finished. */
export interface CountedFiles {
  readonly usage: FileUsage;
  /** The duration of the count in milliseconds, limited by `MAX_TAKEN_MS` and `MAX_TAKEN_OF_ENTRY_MS`. */
  readonly tookMs: number;
}

/** The space of a workspace's files: the latest count and the changes by requests since then. */
export interface FileUsage extends FileCount {
  /** The end of the count, in milliseconds since 1970. */
  readonly countedAtMs: number;
}

/** The pause between two counts is at least this many times as long as a count takes. */
const PAUSE_FACTOR = 10;
/**
 * The longest duration that is noted for a count: so much for the workspace, and for each entry. A count of few
 * entries that lasts longer has waited for other work of the machine. It must not delay the next count, because
 * requests would be refused for files that are gone.
 */
const MAX_TAKEN_MS = 5;
const MAX_TAKEN_OF_ENTRY_MS = 2;
/** The greatest age of a count that `usage` shows. */
const SHOWN_AGE_MS = 5_000;
/**
 * When the count is older than this, the next request causes a new one. The request waits for it if the last count
 * was quick.
 */
const STALE_MS = 1_000;
const QUICK_MS = 100;
/** How long a request waits for a count, or until one may begin. */
const MAX_WAIT_MS = 1_000;

/** The account of one workspace. */
interface Account extends ChargedAccount {
  usage: FileUsage | undefined;
  counting: Promise<void> | undefined;
  /** The beginning of the latest count by the monotonic clock, and its duration, limited as in `CountedFiles`. */
  beganAtMs: number;
  tookMs: number;
  isOver: boolean;
}

const NOTHING: Need = { bytes: 0, entries: 0, freedBytes: 0 };

export class FileQuota {
  readonly #options: FileQuotaOptions;
  readonly #accounts = new Map<WorkspaceId, Account>();

  constructor(options: FileQuotaOptions) {
    this.#options = options;
  }

  /** Returns whether a workspace has any limit. Without one, its files are counted only for `usage`. */
  isSet(workspaceId: WorkspaceId): boolean {
    const { bytes, entries } = this.max(workspaceId);
    return bytes > 0 || entries > 0;
  }

  /** Returns the limits for the files of a workspace. */
  max(workspaceId: WorkspaceId): FileMaximum {
    return this.#options.maxOf(workspaceId);
  }

  /** Resolves with the space that the files take, from a count of the last seconds or, once it is due, from a new one. */
  async usage(workspaceId: WorkspaceId): Promise<FileUsage> {
    const account = this.#account(workspaceId);
    if (account.usage === undefined || performance.now() - account.beganAtMs > SHOWN_AGE_MS)
      await this.#recount(workspaceId, account);
    const { usage } = account;
    invariant(usage !== undefined, 'A count of files that was awaited has a result.', workspaceId);
    const { bytes, entries } = total(account);
    return { ...usage, bytes: Math.max(bytes, 0), entries: Math.max(entries, 0) };
  }

  /** Begins to charge an upload. Disposing of the charge returns the part that was not settled. */
  charge(workspaceId: WorkspaceId): Charge {
    const account = this.#account(workspaceId);
    return new Charge(account, (need) => this.#hold(workspaceId, account, need));
  }

  /** Records a deletion by a request. */
  release(workspaceId: WorkspaceId, bytes: number): void {
    const { changed } = this.#account(workspaceId);
    changed.bytes -= blocksOf(bytes);
    changed.entries -= 1;
  }

  /**
   * Rejects with `file_quota_exceeded` when the files exceed the quota. Waits at most a second for
   * a count that has not begun yet.
   */
  async admitSession(workspaceId: WorkspaceId): Promise<void> {
    if (!this.isSet(workspaceId)) return;
    const account = this.#account(workspaceId);
    if (account.usage === undefined) {
      const counted = this.#recount(workspaceId, account);
      await Promise.race([counted, pause(MAX_WAIT_MS, undefined, { ref: false })]);
    }
    if (account.usage !== undefined) await this.#hold(workspaceId, account, NOTHING);
  }

  /** Counts the workspace again unless it was counted within the last `ms`. */
  async refresh(workspaceId: WorkspaceId, ms: number): Promise<void> {
    const account = this.#account(workspaceId);
    if (performance.now() - account.beganAtMs >= ms) await this.#recount(workspaceId, account);
  }

  /**
   * Adopts a count that another process has just made, to save counting here. The count may lack changes that this process made in
   * the meantime; if there are any, this process counts itself.
   */
  adopt(workspaceId: WorkspaceId, { usage, tookMs }: CountedFiles): void {
    const account = this.#account(workspaceId);
    const { changed, held } = account;
    const amounts = [changed.bytes, changed.entries, held.bytes, held.entries];
    if (account.counting !== undefined || amounts.some((amount) => amount !== 0)) return;
    account.usage = usage;
    account.tookMs = tookMs;
    account.beganAtMs = performance.now() - tookMs;
    account.isOver = this.#isOver(workspaceId, usage);
  }

  #account(workspaceId: WorkspaceId): Account {
    const known = this.#accounts.get(workspaceId);
    if (known !== undefined) return known;
    const account: Account = {
      usage: undefined,
      changed: { bytes: 0, entries: 0 },
      held: { bytes: 0, entries: 0 },
      counting: undefined,
      beganAtMs: Number.NEGATIVE_INFINITY,
      tookMs: 0,
      isOver: false,
    };
    this.#accounts.set(workspaceId, account);
    return account;
  }

  /** Charges the space immediately if there is room for it. Rejects with `file_quota_exceeded`. */
  async #hold(workspaceId: WorkspaceId, account: Account, need: Need): Promise<void> {
    const askedAtMs = performance.now();
    if (this.isSet(workspaceId) && this.#isStale(account)) {
      const counted = this.#recount(workspaceId, account);
      if (account.usage === undefined || account.tookMs < QUICK_MS) await counted;
    }
    if (!this.#fits(workspaceId, account, need) && account.beganAtMs < askedAtMs) {
      const waitMs = nextAtMs(account) - askedAtMs;
      if (waitMs > 0 && waitMs <= MAX_WAIT_MS) await pause(waitMs);
      await this.#recount(workspaceId, account);
    }
    if (!this.#fits(workspaceId, account, need)) throw this.#refusal(workspaceId, account);
    account.held.bytes += need.bytes;
    account.held.entries += need.entries;
  }

  #isOver(workspaceId: WorkspaceId, { bytes, entries, isComplete }: FileCount): boolean {
    const max = this.max(workspaceId);
    const isBeyond = (max.bytes > 0 && bytes > max.bytes) || (max.entries > 0 && entries > max.entries);
    return isBeyond || (this.isSet(workspaceId) && !isComplete);
  }

  #isStale({ usage, beganAtMs }: Account): boolean {
    return usage === undefined || performance.now() - beganAtMs > STALE_MS;
  }

  #fits(workspaceId: WorkspaceId, account: Account, need: Need): boolean {
    if (!this.isSet(workspaceId)) return true;
    const max = this.max(workspaceId);
    const used = total(account);
    return (
      account.usage?.isComplete !== false &&
      (max.bytes === 0 || used.bytes + need.bytes - need.freedBytes <= max.bytes) &&
      (max.entries === 0 || used.entries + need.entries <= max.entries)
    );
  }

  #refusal(workspaceId: WorkspaceId, account: Account): AppError {
    const { bytes: maxBytes, entries: maxEntries } = this.max(workspaceId);
    const { usage, changed } = account;
    const bytes = (usage?.bytes ?? 0) + changed.bytes;
    const entries = (usage?.entries ?? 0) + changed.entries;
    const limits = [
      ...(maxBytes > 0 ? [`${bytes} of ${maxBytes} bytes`] : []),
      ...(maxEntries > 0 ? [`${entries} of ${maxEntries} files and folders`] : []),
    ];
    const uncounted =
      usage?.isComplete === false
        ? ' Not everything could be counted: folders are too deep, cannot be read, or hold too much.'
        : '';
    return new AppError(
      'file_quota_exceeded',
      `The files of this workspace have ${limits.join(' and ')}.${uncounted} Delete files, or ask the operator for more.`,
    );
  }

  /**
   * Counts the workspace, or waits for the count that is under way. Never begins a count before its
   * time.
   */
  #recount(workspaceId: WorkspaceId, account: Account): Promise<void> {
    if (account.counting !== undefined) return account.counting;
    if (performance.now() < nextAtMs(account)) return Promise.resolve();
    account.counting = this.#count(workspaceId, account).finally(() => {
      account.counting = undefined;
    });
    return account.counting;
  }

  async #count(workspaceId: WorkspaceId, account: Account): Promise<void> {
    account.beganAtMs = performance.now();
    const before = { ...account.changed };
    const count = await this.#options.count(workspaceId);
    const { entries } = count;
    const wallMs = performance.now() - account.beganAtMs;
    account.tookMs = Math.min(wallMs, MAX_TAKEN_MS + entries * MAX_TAKEN_OF_ENTRY_MS);
    account.usage = { ...count, countedAtMs: Date.now() };
    // A change made during a count may be missing from it, so it stays charged until the next count.
    account.changed.bytes -= before.bytes;
    account.changed.entries -= before.entries;
    const isOver = this.#isOver(workspaceId, account.usage);
    if (isOver !== account.isOver) this.#options.onChange?.(workspaceId, account.usage, isOver);
    account.isOver = isOver;
    this.#options.onCounted?.(workspaceId, { usage: account.usage, tookMs: account.tookMs });
  }
}

/** Returns when the workspace may be counted again. */
function nextAtMs({ beganAtMs, tookMs }: Account): number {
  return beganAtMs + PAUSE_FACTOR * tookMs;
}

function total({ usage, changed, held }: Account): { readonly bytes: number; readonly entries: number } {
  return {
    bytes: (usage?.bytes ?? 0) + changed.bytes + held.bytes,
    entries: (usage?.entries ?? 0) + changed.entries + held.entries,
  };
}
