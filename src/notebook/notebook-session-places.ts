/**
 * The indexes of notebook sessions by the time at which they were last opened. They are written in the commit that opens or
 * closes a session.
 */
import { type Timestamp, timestamp } from '#src/core/clock.ts';
import { timeOfText, timeText, type WorkspaceId } from '#src/core/ids.ts';
import { openSessionPlaces, sessionPlaces } from '#storage/sessions.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

const TIME_CHARACTERS = timeText(0).length;

export class NotebookSessionPlaces {
  readonly #store: Store;
  /** When the latest session of this process was opened. */
  #latestMs = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Returns the time of an opening. Several workers open sessions, in shared turns: the time is then later than that of every
   * opening in the workspace that is committed, so that a reader who goes on after the last place of a page misses none.
   */
  timeOfOpening(workspaceId: WorkspaceId): Timestamp {
    if (!this.#store.isShared) return timestamp();
    const newestFirst = { limit: 1, reverse: true };
    const [newest] = this.#store.list(sessionPlaces, workspaceId, [], newestFirst);
    const committedMs = newest === undefined ? 0 : timeOfText(newest.id);
    this.#latestMs = Math.max(Date.now(), committedMs + 1, this.#latestMs + 1);
    return timestamp(this.#latestMs);
  }

  /** Notes that a session is opened. `before` is when it was opened the last time; null for a new one. */
  open(workspaceId: WorkspaceId, id: string, at: string, before: string | null): void {
    this.#store.write((tx) => {
      if (before !== null) tx.remove(sessionPlaces, workspaceId, placeOf(before, id));
      tx.put(sessionPlaces, null, workspaceId, placeOf(at, id));
      tx.put(openSessionPlaces, null, workspaceId, placeOf(at, id));
    });
  }

  /** Notes that a session that was opened at `at` is closed. */
  close(workspaceId: WorkspaceId, id: string, at: string): void {
    this.#store.write((tx) => tx.remove(openSessionPlaces, workspaceId, placeOf(at, id)));
  }

  /** Removes a closed session that was opened at `at` from the lists. */
  erase(tx: Transaction, workspaceId: WorkspaceId, id: string, at: string): void {
    tx.remove(sessionPlaces, workspaceId, placeOf(at, id));
  }
}

/** Returns the id of the session at a place. */
export function idAt(place: string): string {
  return place.slice(TIME_CHARACTERS);
}

/** Returns the place of a session in the lists, which are sorted by text. */
function placeOf(openedAt: string, id: string): string {
  return timeText(Date.parse(openedAt)) + id;
}
