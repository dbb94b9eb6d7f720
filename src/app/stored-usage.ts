/** Counts the bytes that a workspace has in the store, in the background of the requests: a small part in each turn. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { StoredUsage } from '#src/wire/usage.ts';
import type { Key } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';

type Group = Exclude<keyof StoredUsage, 'bytes' | 'records' | 'countedAt'>;

const GROUPS: Readonly<Record<string, Group>> = {
  notebook: 'notebooks',
  'notebook-summary': 'notebooks',
  'cell-output': 'notebooks',
  run: 'runs',
  'run-summary': 'runs',
  'run-index': 'runs',
  asset: 'assets',
  conversation: 'conversations',
  'conversation-entry': 'conversations',
  audit: 'audit',
  'audit-query': 'audit',
};
const BYTES_IN_A_TURN = 512 * 1024;
const RECORDS_IN_A_TURN = 500;
/** A count is shown for so long, and for so many times as long as it took. */
const MIN_AGE_MS = 5_000;
const AGE_FACTOR = 9;

interface Count {
  readonly usage: Promise<StoredUsage>;
  /** Until when it is shown, by the monotonic clock; undefined while it is under way. */
  validUntilMs: number | undefined;
}

export class StoredUsageCounter {
  readonly #store: Store;
  readonly #counts = new Map<WorkspaceId, Count>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Resolves with what the workspace has in the store, counted lately. */
  of(workspaceId: WorkspaceId): Promise<StoredUsage> {
    const known = this.#counts.get(workspaceId);
    if (known !== undefined && performance.now() < (known.validUntilMs ?? Number.POSITIVE_INFINITY))
      return known.usage;
    const beganAtMs = performance.now();
    const count: Count = { usage: this.#count(workspaceId), validUntilMs: undefined };
    this.#counts.set(workspaceId, count);
    count.usage.then(
      () => {
        const endedAtMs = performance.now();
        count.validUntilMs = endedAtMs + Math.max(MIN_AGE_MS, AGE_FACTOR * (endedAtMs - beganAtMs));
      },
      () => this.#counts.delete(workspaceId),
    );
    return count.usage;
  }

  async #count(workspaceId: WorkspaceId): Promise<StoredUsage> {
    const sums = { notebooks: 0, runs: 0, assets: 0, conversations: 0, audit: 0, other: 0 };
    let records = 0;
    let last: Key | undefined;
    for (;;) {
      let [bytesNow, recordsNow] = [0, 0];
      for (const { key, bytes } of this.#store.listSizes(workspaceId, last)) {
        sums[GROUPS[key[1]] ?? 'other'] += bytes;
        last = key;
        bytesNow += bytes;
        if (++recordsNow === RECORDS_IN_A_TURN || bytesNow >= BYTES_IN_A_TURN) break;
      }
      records += recordsNow;
      if (recordsNow === 0) break;
      await nextTurn();
    }
    const bytes = Object.values(sums).reduce((total, sum) => total + sum, 0);
    return { bytes, records, ...sums, countedAt: new Date().toISOString() };
  }
}
