/**
 * The time of all objects of one index by time (`timed-places.ts`) in one worker: one timer, set to the first place of the worker's
 * slots. It owns the timer.
 *
 * A worker keeps one number for each slot, however many objects there are. Nothing is read from the store before an object is due.
 * The timer is never set for longer than a minute, so that a clock that was set forward is noticed.
 */

import { timeOfText } from '#src/base/ids.ts';
import type { MarkKind } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { slotText, timedPlaceAt, timedPlacesUntil } from '#storage/lists/timed-places.ts';
import type { Store } from '#storage/store.ts';
import { SLOTS } from './slots.ts';

/** The longest time for which the timer is set. */
const MAX_WAIT_MS = 60_000;
/** How long the objects that are due may hold the event loop in one turn. */
export const MAX_TURN_MS = 4;
/** How many places of a slot are read in one turn. */
const MAX_READ = 100;
/** The first pause of an object that could not be attended to. Each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 300_000;
/** The most kinds of failures that are remembered, so that each is logged once. */
const MAX_KINDS = 100;

/** An object has moved in the index by time. */
export interface MovedPlace {
  readonly slot: number;
  /** When the object needs attention, in milliseconds since 1970; null when it needs none. */
  readonly ms: number | null;
  /** The place that the object has left; null when it had none. */
  readonly left: string | null;
}

export interface PlaceClockParts {
  readonly store: Pick<Store, 'durable' | 'list' | 'refreshShared' | 'write'>;
  readonly log: { error(members: object, message: string): void };
  readonly index: MarkKind;
  /** Returns whether this worker is the home of the object. An object that is gone belongs to any worker, which removes its place. */
  readonly isHere: (workspaceId: string, id: string) => boolean;
  /** Returns the present place of the object; null when it has none or is gone. */
  readonly placeOf: (workspaceId: string, id: string) => string | null;
  /** Does what the object is due to do, and moves its place. */
  readonly attend: (workspaceId: string, id: string, nowMs: number) => void;
  /** Returns whether the server is ending, so that nothing is attended to. */
  readonly isEnding: () => boolean;
}

interface Failure {
  readonly pauseMs: number;
  /** When the object is tried again, in milliseconds since 1970. */
  readonly untilMs: number;
}

export class PlaceClock implements Disposable {
  readonly #parts: PlaceClockParts;
  /** For each slot with an object that needs attention: when the first one does, in milliseconds since 1970. */
  readonly #next = new Map<number, number>();
  /** The places of objects that could not be attended to. Each is tried again after a pause, until the object leaves its place. */
  readonly #failed = new Map<string, Failure>();
  /** The kinds of failures that were logged. */
  readonly #logged = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  /** Whether the timer was set to ring at once. */
  #ringsAtOnce = false;
  #isClosed = false;

  constructor(parts: PlaceClockParts) {
    this.#parts = parts;
  }

  /**
   * Returns how long the earliest object that needs attention has waited for it, in milliseconds; 0 when none waits. An object that
   * could not be attended to waits, too.
   */
  overdueMs(nowMs: number): number {
    let firstMs = nowMs;
    for (const ms of this.#next.values()) if (ms < firstMs) firstMs = ms;
    for (const place of this.#failed.keys()) {
      const { workspaceId, id } = timedPlaceAt(place);
      if (this.#parts.placeOf(workspaceId, id) === place) firstMs = Math.min(firstMs, timeOfText(place));
    }
    return nowMs - firstMs;
  }

  /** Looks for the first object of each slot, also for objects that are overdue. Call it when slots have come to this worker. */
  look(): void {
    this.#parts.store.refreshShared();
    this.#failed.clear();
    for (let slot = 0; slot < SLOTS; slot++) this.#lookAt(slot);
  }

  /** Notes the move of an object. Its new place is in the commit of this turn, or of an earlier one. */
  note({ slot, ms, left }: MovedPlace): void {
    if (left !== null) this.#failed.delete(left);
    if (ms !== null) this.#note(slot, ms);
  }

  #lookAt(slot: number): void {
    const { store, index } = this.#parts;
    const limit = this.#failed.size + 1;
    for (const { id: place } of [...store.list(index, SYSTEM, [slotText(slot)], { limit })]) {
      const failure = this.#failed.get(place);
      if (failure !== undefined) this.#note(slot, failure.untilMs);
      else {
        if (this.#isHere(place)) this.#note(slot, timeOfText(place));
        return;
      }
    }
  }

  #isHere(place: string): boolean {
    const { workspaceId, id } = timedPlaceAt(place);
    return this.#parts.isHere(workspaceId, id);
  }

  #note(slot: number, ms: number): void {
    const known = this.#next.get(slot) ?? Number.POSITIVE_INFINITY;
    if (ms < known) this.#next.set(slot, ms);
    // The timer may have been set before the clock was set forward. An object that is due already does not wait for it.
    const isLate = !this.#ringsAtOnce && ms <= Date.now();
    if (ms < this.#timerMs || isLate) this.#set(Math.min(ms, this.#timerMs));
  }

  #set(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerMs = ms;
    this.#ringsAtOnce = false;
    if (this.#isClosed || ms === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.min(Math.max(ms - Date.now(), 0), MAX_WAIT_MS);
    this.#ringsAtOnce = waitMs === 0;
    this.#timer = setTimeout(() => this.#ring(), waitMs).unref();
  }

  #ring(): void {
    this.#set(Number.POSITIVE_INFINITY);
    if (this.#parts.isEnding()) return;
    const { store } = this.#parts;
    const nowMs = Date.now();
    const endMs = performance.now() + MAX_TURN_MS;
    const due = [...this.#next].filter(([, ms]) => ms <= nowMs);
    if (due.length > 0) store.refreshShared();
    for (const [slot] of due) {
      if (performance.now() >= endMs) break;
      this.#next.delete(slot);
      const isWhole = this.#attendTo(slot, nowMs, endMs);
      if (!isWhole) this.#next.set(slot, nowMs);
      // The index shows committed places. Places of this turn are noted as they are written.
      else
        Promise.resolve(store.durable()).then(
          () => this.#isClosed || this.#lookAt(slot),
          () => undefined, // the store reports a failed commit
        );
    }
    this.#set(Math.min(...this.#next.values()));
  }

  /** Attends to the objects of a slot that are due. Returns whether none was left for a later turn. */
  #attendTo(slot: number, nowMs: number, endMs: number): boolean {
    const { store, index, placeOf, attend } = this.#parts;
    // The failed ones may all be in front of the others.
    const due = { until: timedPlacesUntil(nowMs), limit: MAX_READ + this.#failed.size };
    const places = [...store.list(index, SYSTEM, [slotText(slot)], due)];
    for (const { id: place } of places) {
      if ((this.#failed.get(place)?.untilMs ?? 0) > nowMs) continue;
      if (!this.#isHere(place)) return true;
      const { workspaceId, id } = timedPlaceAt(place);
      const present = placeOf(workspaceId, id);
      if (present !== place) {
        // Moved in a turn that is not committed yet, or left behind by an object that is gone.
        if (present === null) store.write((tx) => tx.remove(index, SYSTEM, slotText(slot), place));
        continue;
      }
      try {
        attend(workspaceId, id, nowMs);
      } catch (error) {
        this.#fail(place, id, error, nowMs);
      }
      if (performance.now() >= endMs) return false;
    }
    return places.length < due.limit;
  }

  #fail(place: string, id: string, error: unknown, nowMs: number): void {
    const { pauseMs: before = FIRST_PAUSE_MS / 2 } = this.#failed.get(place) ?? {};
    const pauseMs = Math.min(2 * before, MAX_PAUSE_MS);
    this.#failed.set(place, { pauseMs, untilMs: nowMs + pauseMs });
    const kind = kindOf(error);
    if (this.#logged.has(kind) || this.#logged.size >= MAX_KINDS) return;
    this.#logged.add(kind);
    this.#parts.log.error(
      { err: error, id },
      'a job or a hook could not do what was due; it is tried again, and further failures of this kind are not logged',
    );
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Returns a text that failures of one kind have in common: the name of the error, and the place in the code that has thrown it. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const [, place = ''] = /^ +at (.*)$/m.exec(error.stack ?? '') ?? [];
  return `${error.name} ${place}`;
}
