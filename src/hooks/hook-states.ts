/**
 * The stored state of hooks: their records, their actors, their places by time, and their deliveries. The home of the workspace writes
 * all of it. All writes of one turn are one commit.
 */

import { type HookContext, type HookEvent, hookAttentionMs, hookMachine } from '#machines/hook.ts';
import { notFound } from '#src/base/errors/errors.ts';
import { type DeliveryId, type HookId, timeOfText, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Delivery, HookEventType, HookFilter } from '#src/contract/wire/hook.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { ConditionTally, unlinkCondition } from '#src/runtime/homes/condition-tally.ts';
import type { MovedPlace } from '#src/runtime/homes/place-clock.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import { slotText, timedPlaceOf } from '#storage/lists/timed-places.ts';
import {
  deliveryAt,
  deliveryRecords,
  HOOK_CONDITIONS,
  type HookBook,
  type HookCondition,
  type HookRecord,
  hookBooks,
  hookConditions,
  hookPlaces,
  hookQueue,
  hookRecords,
  queuePlaceOf,
  wantedEvents,
} from '#storage/records/hooks.ts';
import type { Transaction } from '#storage/transaction.ts';
import { FAILURE_CODES } from './sender.ts';

/** The members of a hook that its owner sets. */
export interface Definition {
  readonly url: string;
  readonly events: readonly HookEventType[];
  readonly filter: HookFilter;
  readonly name: string | null;
}

/** A stored hook. */
export interface StoredHook {
  readonly record: HookRecord;
  readonly definition: Definition;
}

/** A delivery as it is stored. */
export interface StoredDelivery extends Delivery {
  /** The conversation that the delivery tells of. Absent when it tells of none. */
  readonly agentSessionId?: string;
}

/**
 * Removes the entries of a hook from the indexes by time and by condition, if the record with this key has its place. The record is
 * about to be removed with its workspace. If it is damaged, the clock removes its place once it is due.
 */
export function unlinkHook(tx: Transaction, [workspaceId, name, id = '']: StoreKey): void {
  if (name !== hookBooks.name) return;
  const book = unlessDamaged(() => tx.get(hookBooks, workspaceId, id));
  if (book === undefined) return;
  if (book.place !== null) tx.remove(hookPlaces, SYSTEM, slotText(slotOf(workspaceId)), book.place);
  if (book.condition !== undefined) unlinkCondition(tx, hookConditions, { workspaceId, id }, { workspaceId });
}

/** Names a hook among all actors of its kind. */
export type HookAddress = ActorId & { readonly id: HookId };

/** The first delivery that waits. */
export interface Waiting {
  readonly deliveryId: DeliveryId;
  readonly dueMs: number;
}

/** The most deliveries that a hook keeps. A new one replaces the oldest. */
const MAX_DELIVERIES = 1000;
/** The most deliveries of a hook that wait. A new one makes the oldest die. */
const MAX_PENDING = 500;
/** How many places are read to find one that is not taken in a turn that is not committed yet. */
const MAX_READ = 20;

const NEW_BOOK: HookBook = { place: null, pending: 0, stored: 0 };
const OUTBOX_FULL = {
  code: 'outbox_full',
  message: `More than ${MAX_PENDING} deliveries of the hook were waiting, so the oldest one was given up.`,
};

export class HookStates {
  readonly actors: ActorKind<typeof hookMachine>;
  /** The paused hooks of this worker. */
  readonly tally: ConditionTally<HookCondition>;
  readonly #context: Pick<PlaneContext, 'store' | 'metrics'>;
  #onPlace: (moved: MovedPlace) => void = () => undefined;

  constructor(context: Pick<PlaneContext, 'store' | 'runtime' | 'metrics' | 'cluster'>) {
    this.#context = context;
    const { store, cluster, metrics } = context;
    this.tally = new ConditionTally({
      store,
      cluster,
      index: hookConditions,
      conditions: HOOK_CONDITIONS,
      factsOf: (workspaceId, hookId) =>
        store.has(hookRecords, workspaceId, hookId)
          ? { home: { workspaceId }, condition: this.bookOf(workspaceId, hookId).condition }
          : undefined,
    });
    // The first death must change a series that is there, or Prometheus does not see an increase.
    for (const code of [...FAILURE_CODES, OUTBOX_FULL.code]) metrics.hookDeliveries.of('dead', code);
    this.actors = context.runtime.define({
      kind: 'hook',
      machine: hookMachine,
      machineVersion: 1,
      hasNewIds: true,
      restored: { type: 'restored' },
      shown: ({ delivery, dueMs, deaths, isPaused, reason }) => ({
        links: [],
        context: { isPaused, deaths, dueMs, reason: reason?.code ?? null, deliveryId: delivery?.id ?? null },
      }),
    });
  }

  /** Sets the listener for places. */
  onPlace(listener: (moved: MovedPlace) => void): void {
    this.#onPlace = listener;
  }

  /** Returns a hook; undefined when there is none. */
  find(workspaceId: string, hookId: string): StoredHook | undefined {
    const record = this.#context.store.get(hookRecords, workspaceId, hookId);
    return record && { record, definition: definitionIn(record) };
  }

  /** Returns a hook. Throws `not_found`. */
  read(workspaceId: string, hookId: string): StoredHook {
    const hook = this.find(workspaceId, hookId);
    if (hook === undefined) throw notFound();
    return hook;
  }

  /** Returns the ids of the hooks of a workspace, also of those made in this turn. */
  idsIn(workspaceId: string): ReadonlySet<string> {
    return this.#context.store.idsUnder(hookRecords, workspaceId);
  }

  /** Returns whether a hook sends nothing, because it is paused. */
  isPaused(hook: ActorId): boolean {
    return this.actors.peek(hook)?.snapshot.context.isPaused !== false;
  }

  /** Reports an event to the hook and moves its place. Returns whether its state has taken the event. */
  tell(hook: ActorId, event: HookEvent): boolean {
    const wasPaused = this.isPaused(hook);
    const isTaken = this.actors.tell(hook, event);
    if (!isTaken) return false;
    this.#context.store.write((tx) => this.place(tx, hook));
    if (this.isPaused(hook) !== wasPaused) this.noteWanted(hook.workspaceId);
    return true;
  }

  /** Puts the hook into the indexes by time and by condition, where its state belongs. */
  place(tx: Transaction, { workspaceId, id }: ActorId): void {
    const context = this.actors.peek({ workspaceId, id })?.snapshot.context;
    if (context === undefined) return;
    const ms = hookAttentionMs(context);
    const book = tx.get(hookBooks, workspaceId, id) ?? NEW_BOOK;
    const place = ms === null ? null : timedPlaceOf(ms, workspaceId, id);
    const slot = slotOf(workspaceId);
    const condition = conditionOf(context);
    if (place === book.place && condition === book.condition) return;
    const { condition: _, ...rest } = book;
    tx.put(hookBooks, { ...rest, place, ...(condition && { condition }) }, workspaceId, id);
    if (condition !== book.condition) this.tally.move(tx, { workspaceId, id }, { workspaceId }, condition);
    if (place === book.place) return;
    if (book.place !== null) tx.remove(hookPlaces, SYSTEM, slotText(slot), book.place);
    if (place !== null) tx.mark(hookPlaces, SYSTEM, slotText(slot), place);
    this.#onPlace({ slot, ms, left: book.place });
  }

  /** Returns the present place of a hook in the index; null when it has none. */
  placeOf(workspaceId: string, hookId: string): string | null {
    return this.bookOf(workspaceId, hookId).place;
  }

  bookOf(workspaceId: string, hookId: string): HookBook {
    return this.#context.store.get(hookBooks, workspaceId, hookId) ?? NEW_BOOK;
  }

  /** Writes which events the hooks of a workspace want. Call it when a hook was created, changed, paused, resumed or deleted. */
  noteWanted(workspaceId: WorkspaceId): void {
    const { store } = this.#context;
    const wanted = new Set<HookEventType>();
    for (const id of this.idsIn(workspaceId)) {
      if (this.isPaused({ workspaceId, id })) continue;
      for (const event of this.find(workspaceId, id)?.definition.events ?? []) wanted.add(event);
    }
    store.write((tx) => {
      if (wanted.size === 0) tx.remove(wantedEvents, workspaceId);
      else tx.put(wantedEvents, [...wanted].sort(), workspaceId);
    });
  }

  /** Stores a delivery that waits from now on. Removes the oldest deliveries beyond the limits. */
  queue(hook: ActorId, delivery: StoredDelivery): void {
    const { store } = this.#context;
    const { workspaceId, id } = hook;
    const nowMs = Date.parse(delivery.queuedAt);
    store.write((tx) => {
      const book = tx.get(hookBooks, workspaceId, id) ?? NEW_BOOK;
      const isNew = tx.get(deliveryRecords, workspaceId, id, delivery.id) === undefined;
      this.put(tx, workspaceId, delivery);
      tx.mark(hookQueue, workspaceId, id, queuePlaceOf(nowMs, delivery.id));
      const counted = { ...book, pending: book.pending + 1, stored: book.stored + (isNew ? 1 : 0) };
      // Deliveries of the same turn are not listed yet, so the next one finds what this one leaves beyond the limits.
      const given = this.#giveUpOldest(tx, hook, counted.pending - MAX_PENDING);
      const removed = this.#removeOldest(tx, hook, counted.stored - MAX_DELIVERIES);
      tx.put(
        hookBooks,
        { ...counted, pending: counted.pending - given, stored: counted.stored - removed },
        workspaceId,
        id,
      );
    });
    this.tell(hook, { type: 'queued', dueMs: nowMs });
  }

  /** Makes the deliveries die that have waited longest. Returns how many died. */
  #giveUpOldest(tx: Transaction, { workspaceId, id }: ActorId, excess: number): number {
    if (excess <= 0) return 0;
    const limit = excess + MAX_READ;
    let given = 0;
    for (const { id: place } of [...this.#context.store.list(hookQueue, workspaceId, [id], { limit })]) {
      if (given === excess) break;
      if (tx.get(hookQueue, workspaceId, id, place) === undefined) continue;
      const delivery = this.delivery(workspaceId, id, deliveryAt(place));
      if (delivery === undefined) continue;
      tx.remove(hookQueue, workspaceId, id, place);
      const end = {
        status: 'dead',
        reason: OUTBOX_FULL,
        nextAttemptAt: null,
        finishedAt: timestamp(),
      } as const;
      this.end(tx, workspaceId, { ...delivery, ...end });
      given++;
    }
    return given;
  }

  /** Removes the oldest deliveries that are over. Returns how many were removed. */
  #removeOldest(tx: Transaction, { workspaceId, id }: ActorId, excess: number): number {
    if (excess <= 0) return 0;
    const page = { limit: MAX_DELIVERIES };
    let removed = 0;
    for (const { id: deliveryId } of this.#context.store.list(deliveryRecords, workspaceId, [id], page)) {
      const bytes = tx.get(deliveryRecords, workspaceId, id, deliveryId);
      if (bytes === undefined || deliveryIn(bytes).status === 'pending') continue;
      tx.remove(deliveryRecords, workspaceId, id, deliveryId);
      removed++;
      if (removed === excess) break;
    }
    return removed;
  }

  /** Returns the first delivery that waits; undefined when none does. One that was queued in this turn may be missing. */
  firstWaiting(tx: Pick<Transaction, 'get'>, workspaceId: string, hookId: string): Waiting | undefined {
    const { store } = this.#context;
    for (const { id: place } of [...store.list(hookQueue, workspaceId, [hookId], { limit: MAX_READ })])
      if (tx.get(hookQueue, workspaceId, hookId, place) !== undefined)
        return { deliveryId: deliveryAt(place) as DeliveryId, dueMs: timeOfText(place) };
    return undefined;
  }

  /** Returns a stored delivery; undefined when there is none. */
  delivery(workspaceId: string, hookId: string, deliveryId: string): StoredDelivery | undefined {
    const bytes = this.#context.store.get(deliveryRecords, workspaceId, hookId, deliveryId);
    return bytes && deliveryIn(bytes);
  }

  /** Stores a delivery that is over, and counts it for the metrics. */
  end(tx: Transaction, workspaceId: string, delivery: StoredDelivery): void {
    const { hookDeliveries, hookDelay } = this.#context.metrics;
    const { status, reason, queuedAt } = delivery;
    hookDeliveries.of(status, reason?.code ?? '').add();
    // The clock may have been set back since the event.
    if (status === 'delivered') hookDelay.of().observe(Math.max(0, Date.now() - Date.parse(queuedAt)) / 1000);
    this.put(tx, workspaceId, delivery);
  }

  put(tx: Transaction, workspaceId: string, delivery: StoredDelivery): void {
    const bytes = Buffer.from(JSON.stringify(delivery));
    tx.put(deliveryRecords, bytes, workspaceId, delivery.hookId, delivery.id);
  }

  /** Removes a hook. Its deliveries are removed in later steps. */
  erase(tx: Transaction, hook: ActorId): void {
    const { workspaceId, id } = hook;
    const book = tx.get(hookBooks, workspaceId, id);
    if (book?.place != null) {
      const slot = slotOf(workspaceId);
      tx.remove(hookPlaces, SYSTEM, slotText(slot), book.place);
      this.#onPlace({ slot, ms: null, left: book.place });
    }
    this.tally.move(tx, hook, { workspaceId }, undefined);
    tx.remove(hookBooks, workspaceId, id);
    tx.remove(hookRecords, workspaceId, id);
    this.actors.erase(tx, hook);
  }
}

/** Returns the condition of a hook; undefined for a hook that sends. */
function conditionOf({ isPaused, reason }: HookContext): HookCondition | undefined {
  if (!isPaused) return undefined;
  return reason === null ? 'paused' : 'paused_by_itself';
}

/** Returns the members that the owner of a hook has set. */
export function definitionIn({ definition }: HookRecord): Definition {
  const parsed: Definition = JSON.parse(Buffer.from(definition).toString('utf8'));
  return parsed;
}

/** Returns a stored delivery. */
export function deliveryIn(bytes: Uint8Array): StoredDelivery {
  const parsed: StoredDelivery = JSON.parse(Buffer.from(bytes).toString('utf8'));
  return parsed;
}

/** Returns a delivery as the API shows it. */
export function shownDelivery({ agentSessionId: _, ...delivery }: StoredDelivery): Delivery {
  return delivery;
}

/** Names a hook among all actors of its kind. */
export function hookIdOf(workspaceId: string, hookId: string): HookAddress {
  return { workspaceId: workspaceId as WorkspaceId, id: hookId as HookId };
}
