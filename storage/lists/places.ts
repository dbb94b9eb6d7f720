/**
 * Places in lists that are sorted by a time other than that of the item's id. A place is the time
 * as text, and then the id. The text has a fixed length, so that places sort by time.
 */

import { type IdKind, isIdOf, isTimeText, timeOfText, timeText, type WorkspaceId } from '#src/base/ids.ts';
import { type IsoTime, timestamp } from '#src/base/time/clock.ts';
import type { RecordKind } from '../codec.ts';
import type { Store } from '../store.ts';

const TIME_CHARACTERS = timeText(0).length;

/** Returns the place of an item with this time. */
export function placeOf(at: string, id: string): string {
  return timeText(Date.parse(at)) + id;
}

/** Returns the id of the item that has this place. */
export function idAt(place: string): string {
  return place.slice(TIME_CHARACTERS); // cuts no character: a time is ASCII
}

/** Returns whether the text has the form of the places of this kind of item. */
export function isPlaceOf(kind: IdKind, text: string): boolean {
  return isTimeText(text.slice(0, TIME_CHARACTERS)) && isIdOf(kind, idAt(text)); // cuts no character: a time is ASCII
}

/**
 * Assigns the times of new places in one list. Several workers add places to it, in shared turns. Each time is later
 * than the times of all committed places in the workspace, so that a reader who continues after the last place of a
 * page misses no place.
 */
export class PlaceTimes {
  readonly #store: Pick<Store, 'isShared' | 'list'>;
  readonly #kind: RecordKind<null>;
  #latestMs = 0;

  constructor(store: Pick<Store, 'isShared' | 'list'>, kind: RecordKind<null>) {
    this.#store = store;
    this.#kind = kind;
  }

  next(workspaceId: WorkspaceId): IsoTime {
    if (!this.#store.isShared) return timestamp();
    const newestFirst = { limit: 1, reverse: true };
    const [newest] = this.#store.list(this.#kind, workspaceId, [], newestFirst);
    const committedMs = newest === undefined ? 0 : timeOfText(newest.id);
    this.#latestMs = Math.max(Date.now(), committedMs + 1, this.#latestMs + 1);
    return timestamp(this.#latestMs);
  }
}
