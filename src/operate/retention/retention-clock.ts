/**
 * Whether the clock of this machine can be trusted with deletions. A clock that is ahead makes everything seem too
 * old: one start with it would delete all that the settings limit. So nothing is deleted while the clock is more than
 * two days past both the last sweep and the newest record. Deletions begin again when an operator confirms the clock,
 * or when the server has run with it for two days. A record that was made after the clock had jumped proves nothing:
 * between it and the last sweep there are two days without any record.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { firstIdAt, timeOfId } from '#src/base/ids.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import { auditRecords } from '#storage/records/audit.ts';
import { deliveryRecords } from '#storage/records/hooks.ts';
import { notebookVersions } from '#storage/records/notebooks.ts';
import { type RetentionClockRecord, retentionClock } from '#storage/records/retention.ts';
import { runIndex } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';

const HOUR_MS = 3_600_000;
/**
 * A clock that is ahead of the last sweep or the newest record by less than this time is trusted. A clock
 * that is further ahead is trusted after the server has run with it for this time.
 */
const MAX_AHEAD_MS = 48 * HOUR_MS;
/** Checks are an hour apart. A longer pause, such as a stop of the server, does not count as running time. */
const MAX_RUN_MS = 2 * HOUR_MS;

/** The records that have the time of their creation in their id. */
const DATED = [
  { kind: runIndex, id: 'run' },
  { kind: auditRecords, id: 'audit' },
] as const;
/** All records that are deleted by the clock, in part or as a whole. */
const DELETED = [...DATED.map(({ kind }) => kind), notebookVersions, deliveryRecords];

/** Called when the clock is held for wrong, with the time since the last sweep in milliseconds; undefined when there was none. */
type OnHeld = (aheadMs: number | undefined) => void;

/** Any worker may check and confirm the clock, because the decisions are made in shared turns. */
export class RetentionClock {
  readonly #store: Store;
  readonly #onHeld: OnHeld;
  readonly #startedAtMs: number;

  /** `startedAtMs` is when this process started. Later records have the time of the same clock, and prove nothing. */
  constructor(store: Store, onHeld: OnHeld, startedAtMs = performance.timeOrigin) {
    this.#store = store;
    this.#onHeld = onHeld;
    this.#startedAtMs = startedAtMs;
  }

  /** Whether the last check found that the clock is ahead, and nobody has confirmed it since. */
  get isHeld(): boolean {
    return typeof this.#read()?.heldSince === 'number';
  }

  /**
   * Resolves with whether records may be deleted by the clock, once that decision is on disk. `now` is the time of
   * the clock.
   */
  async check(now: number): Promise<boolean> {
    const before = this.#read();
    const needsRecords = !isTrusted(before, now) && !isStillHeld(before, now);
    const age = needsRecords ? await this.#ageOfRecords(now, before?.trustedAt) : 'unknown';
    let mayDelete = false;
    this.#store.decide(() => {
      const state = this.#read();
      const next = nextState(state, now, age);
      this.#store.write((tx) => tx.put(retentionClock, next, SYSTEM));
      mayDelete = next.heldSince === null;
      if (!mayDelete && typeof state?.heldSince !== 'number')
        this.#onHeld(next.trustedAt === null ? undefined : now - next.trustedAt);
    });
    await this.#store.durable();
    return mayDelete;
  }

  /** Trusts the clock, whose time is `now`. Resolves once that is on disk. */
  async confirm(now: number): Promise<void> {
    this.#store.decide(() => this.#store.write((tx) => tx.put(retentionClock, trusted(now), SYSTEM)));
    await this.#store.durable();
  }

  #read(): RetentionClockRecord | undefined {
    return unlessDamaged(() => this.#store.get(retentionClock, SYSTEM));
  }

  /**
   * Looks at records that are older than this process. Resolves with `recent` if the newest of them is recent, and
   * there is no gap of two days between the records since the last sweep.
   */
  async #ageOfRecords(now: number, sweptAt: number | null | undefined): Promise<Age> {
    const until = Math.floor(Math.min(now, this.#startedAtMs));
    let newest = await this.#newestWithin(now - MAX_AHEAD_MS, until);
    if (newest === undefined) return (await this.#hasRecords()) ? 'old' : 'none';
    for (newest = sweptAt ?? newest; newest < now - MAX_AHEAD_MS; ) {
      const next = await this.#newestWithin(newest + 1, Math.min(newest + MAX_AHEAD_MS, until));
      if (next === undefined) return 'old';
      newest = next;
    }
    return 'recent';
  }

  /**
   * Resolves with the time of the newest record in this interval, whose end is excluded. Reads two keys of each
   * workspace.
   */
  async #newestWithin(fromMs: number, toMs: number): Promise<number | undefined> {
    let newest: number | undefined;
    for await (const partition of this.#partitions())
      for (const { kind, id } of DATED) {
        const page = { after: firstIdAt(id, toMs), until: firstIdAt(id, fromMs), limit: 1, reverse: true };
        for (const found of this.#store.list<unknown>(kind, partition, [], page))
          newest = Math.max(newest ?? 0, timeOfId(found.id));
      }
    return newest;
  }

  async #hasRecords(): Promise<boolean> {
    for await (const partition of this.#partitions())
      for (const kind of DELETED)
        if ([...this.#store.listKeys(kind, partition, [], 1)].length > 0) return true;
    return false;
  }

  /** Yields the workspaces, each in a turn of its own. */
  async *#partitions(): AsyncGenerator<string> {
    for (let partition = this.#store.nextPartition(undefined); partition !== undefined; ) {
      yield partition;
      await nextTurn();
      partition = this.#store.nextPartition(partition);
    }
  }
}

/** The age of the newest record; `none` when there are no records. */
type Age = 'recent' | 'old' | 'none' | 'unknown';

function nextState(state: RetentionClockRecord | undefined, now: number, age: Age): RetentionClockRecord {
  if (isTrusted(state, now)) return trusted(now);
  if (isStillHeld(state, now)) {
    const passedMs = now - state.checkedAt;
    const ranMs = passedMs > MAX_AHEAD_MS ? 0 : state.ranMs + Math.min(Math.max(passedMs, 0), MAX_RUN_MS);
    return ranMs >= MAX_AHEAD_MS ? trusted(now) : { ...state, checkedAt: now, ranMs };
  }
  if (age === 'recent' || age === 'none') return trusted(now);
  return { trustedAt: state?.trustedAt ?? null, heldSince: now, checkedAt: now, ranMs: 0 };
}

function trusted(now: number): RetentionClockRecord {
  return { trustedAt: now, heldSince: null, checkedAt: now, ranMs: 0 };
}

/** Returns whether the clock is near the last sweep, as it is after it was corrected. */
function isTrusted(state: RetentionClockRecord | undefined, now: number): boolean {
  if (state === undefined || state.trustedAt === null || isStillHeld(state, now)) return false;
  return now - state.trustedAt <= MAX_AHEAD_MS;
}

/** Returns whether the clock was considered wrong and was not corrected since. */
function isStillHeld(
  state: RetentionClockRecord | undefined,
  now: number,
): state is RetentionClockRecord & { readonly heldSince: number } {
  return state !== undefined && state.heldSince !== null && now >= state.heldSince;
}
