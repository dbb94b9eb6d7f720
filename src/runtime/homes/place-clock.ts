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
const MAX_TURN_MS = 4;
/** How many places of a slot are read in one turn. */
const MAX_READ = 100;

export interface PlaceClockParts {
  readonly store: Pick<Store, 'durable' | 'list' | 'refreshShared' | 'write'>;
  readonly index: MarkKind;
  /** Returns whether this worker is the home of the object. An object that is gone belongs to any worker, which removes its place. */
  isHere(workspaceId: string, id: string): boolean;
  /** Returns the present place of the object; null when it has none or is gone. */
  placeOf(workspaceId: string, id: string): string | null;
  /** Does what the object is due to do, and moves its place. */
  attend(workspaceId: string, id: string, nowMs: number): void;
  /** Called once for each place whose object could not be attended to. The place is left until the next start. */
  onFault(error: unknown, id: string): void;
  /** Returns whether the server is ending, so that nothing is attended to. */
  isEnding(): boolean;
}

export class PlaceClock implements Disposable {
  readonly #parts: PlaceClockParts;
  /** For each slot with an object that needs attention: when the first one does, in milliseconds since 1970. */
  readonly #next = new Map<number, number>();
  /** Places of objects that could not be attended to. */
  readonly #failed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(parts: PlaceClockParts) {
    this.#parts = parts;
  }

  /** How many timers the objects of this worker have: at most one. */
  get timerCount(): number {
    return this.#timer === undefined ? 0 : 1;
  }

  /** Looks for the first object of each slot, also for objects that are overdue. Call it when slots have come to this worker. */
  look(): void {
    this.#parts.store.refreshShared();
    for (let slot = 0; slot < SLOTS; slot++) this.#lookAt(slot);
  }

  /** Notes that an object of the slot needs attention at `ms`. Its place is in the commit of this turn, or of an earlier one. */
  note(slot: number, ms: number): void {
    const known = this.#next.get(slot);
    if (known !== undefined && known <= ms) return;
    this.#next.set(slot, ms);
    if (ms < this.#timerMs) this.#set(ms);
  }

  #lookAt(slot: number): void {
    const { store, index } = this.#parts;
    const limit = this.#failed.size + 1;
    for (const { id: place } of [...store.list(index, SYSTEM, [slotText(slot)], { limit })])
      if (!this.#failed.has(place)) {
        if (this.#isHere(place)) this.note(slot, timeOfText(place));
        return;
      }
  }

  #isHere(place: string): boolean {
    const { workspaceId, id } = timedPlaceAt(place);
    return this.#parts.isHere(workspaceId, id);
  }

  #set(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerMs = ms;
    if (this.#isClosed || ms === Number.POSITIVE_INFINITY) return;
    const waitMs = Math.min(Math.max(ms - Date.now(), 0), MAX_WAIT_MS);
    this.#timer = setTimeout(() => this.#ring(), waitMs).unref();
  }

  #ring(): void {
    this.#timer = undefined;
    this.#timerMs = Number.POSITIVE_INFINITY;
    const { store } = this.#parts;
    const nowMs = Date.now();
    const endMs = performance.now() + MAX_TURN_MS;
    const isEnding = this.#parts.isEnding();
    const due = [...this.#next].filter(([, ms]) => ms <= nowMs);
    if (due.length > 0 && !isEnding) store.refreshShared();
    for (const [slot] of isEnding ? [] : due) {
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
    if (!isEnding) this.#set(Math.min(...this.#next.values()));
  }

  /** Attends to the objects of a slot that are due. Returns whether none was left for a later turn. */
  #attendTo(slot: number, nowMs: number, endMs: number): boolean {
    const { store, index, placeOf, attend, onFault } = this.#parts;
    const due = { until: timedPlacesUntil(nowMs), limit: MAX_READ };
    const places = [...store.list(index, SYSTEM, [slotText(slot)], due)];
    for (const { id: place } of places) {
      if (this.#failed.has(place)) continue;
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
        this.#failed.add(place);
        onFault(error, id);
      }
      if (performance.now() >= endMs) return false;
    }
    return places.length < MAX_READ;
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
