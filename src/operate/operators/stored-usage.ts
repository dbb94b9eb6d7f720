/** Counts the bytes that a workspace has in the store, in the background of the requests: a small part in each turn. */
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { StoredUsage } from '#src/contract/wire/usage.ts';
import type { StoreKey } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';

type Group = Exclude<keyof StoredUsage, 'bytes' | 'records' | 'complete' | 'countedAt'>;

const GROUPS: Readonly<Record<string, Group>> = {
  notebook: 'notebooks',
  'notebook-summary': 'notebooks',
  'notebook-versions': 'notebooks',
  'notebook-version': 'notebooks',
  'cell-output': 'notebooks',
  run: 'runs',
  'run-summary': 'runs',
  'run-printed': 'runs',
  'run-index': 'runs',
  'session-run': 'runs',
  'agent-run': 'runs',
  'status-run': 'runs',
  'ended-run': 'runs',
  'environment-run': 'runs',
  'user-run': 'runs',
  'run-end': 'runs',
  asset: 'assets',
  'session-blob': 'assets',
  'session-blob-uses': 'assets',
  conversation: 'conversations',
  'conversation-entry': 'conversations',
  audit: 'audit',
  'audit-query': 'audit',
};
const BYTES_IN_A_TURN = 512 * 1024;
const RECORDS_IN_A_TURN = 500;
/** How long a request waits for a new count. */
const MAX_WAIT_MS = 1_000;
/** A count is shown for this time, or for this multiple of its duration. */
const MIN_AGE_MS = 5_000;
const AGE_FACTOR = 9;

/** A count that is under way. */
interface Count {
  /** The counts so far. */
  readonly usage: Mutable<StoredUsage>;
  /** Resolves when everything is counted. */
  readonly over: Promise<void>;
}

interface Known {
  readonly usage: StoredUsage;
  /** Until this time of the monotonic clock, the count is shown and no new one begins. */
  readonly validUntilMs: number;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

export class StoredUsageCounter {
  readonly #store: Pick<Store, 'listSizes'>;
  readonly #maxWaitMs: number;
  readonly #known = new Map<WorkspaceId, Known>();
  readonly #counts = new Map<WorkspaceId, Count>();

  constructor(store: Pick<Store, 'listSizes'>, maxWaitMs = MAX_WAIT_MS) {
    this.#store = store;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * Resolves with the recent use of the store by the workspace. When a new count takes long,
   * returns the previous one. Without a previous count, returns the sum so far.
   */
  async of(workspaceId: WorkspaceId): Promise<StoredUsage> {
    const known = this.#known.get(workspaceId);
    if (known !== undefined && performance.now() < known.validUntilMs) return known.usage;
    const { usage, over } = this.#counts.get(workspaceId) ?? this.#begin(workspaceId);
    await Promise.race([over, pause(this.#maxWaitMs, undefined, { ref: false })]);
    return this.#known.get(workspaceId)?.usage ?? { ...usage };
  }

  #begin(workspaceId: WorkspaceId): Count {
    const sums = { bytes: 0, notebooks: 0, runs: 0, assets: 0, conversations: 0, audit: 0, other: 0 };
    const usage = { ...sums, records: 0, complete: false, countedAt: timestamp() };
    const over = this.#count(workspaceId, usage).finally(() => this.#counts.delete(workspaceId));
    over.catch(() => undefined); // the caller that awaits `over` handles the failure
    const count = { usage, over };
    this.#counts.set(workspaceId, count);
    return count;
  }

  async #count(workspaceId: WorkspaceId, usage: Count['usage']): Promise<void> {
    const beganAtMs = performance.now();
    for (let last: StoreKey | undefined; ; await nextTurn()) {
      let [bytesNow, recordsNow] = [0, 0];
      for (const { key, bytes } of this.#store.listSizes(workspaceId, last)) {
        usage[GROUPS[key[1]] ?? 'other'] += bytes;
        last = key;
        bytesNow += bytes;
        if (++recordsNow === RECORDS_IN_A_TURN || bytesNow >= BYTES_IN_A_TURN) break;
      }
      usage.bytes += bytesNow;
      usage.records += recordsNow;
      usage.countedAt = timestamp();
      if (recordsNow === 0) break;
    }
    usage.complete = true;
    const endedAtMs = performance.now();
    const validUntilMs = endedAtMs + Math.max(MIN_AGE_MS, AGE_FACTOR * (endedAtMs - beganAtMs));
    this.#known.set(workspaceId, { usage, validUntilMs });
  }
}
