/**
 * The indexes of notebook sessions by the time at which they were last opened. They are written in the commit that opens or
 * closes a session.
 */

import type { WorkspaceId } from '#src/base/ids.ts';
import type { IsoTime } from '#src/base/time/clock.ts';
import { PlaceTimes, placeOf } from '#storage/lists/places.ts';
import { openSessionPlaces, sessionPlaces } from '#storage/records/sessions.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

export class NotebookSessionPlaces {
  readonly #store: Store;
  readonly #times: PlaceTimes;

  constructor(store: Store) {
    this.#store = store;
    this.#times = new PlaceTimes(store, sessionPlaces);
  }

  /** Returns the time of an opening, by which the list is sorted. */
  timeOfOpening(workspaceId: WorkspaceId): IsoTime {
    return this.#times.next(workspaceId);
  }

  /**
   * Records that a session is opened. `before` is the time of its previous opening; null for a new session.
   */
  open(workspaceId: WorkspaceId, id: string, at: string, before: string | null): void {
    this.#store.write((tx) => {
      if (before !== null) tx.remove(sessionPlaces, workspaceId, placeOf(before, id));
      tx.mark(sessionPlaces, workspaceId, placeOf(at, id));
      tx.mark(openSessionPlaces, workspaceId, placeOf(at, id));
    });
  }

  /** Records that a session, which was opened at `at`, is closed. */
  close(workspaceId: WorkspaceId, id: string, at: string): void {
    this.#store.write((tx) => tx.remove(openSessionPlaces, workspaceId, placeOf(at, id)));
  }

  /** Removes a closed session that was opened at `at` from the lists. */
  erase(tx: Transaction, workspaceId: WorkspaceId, id: string, at: string): void {
    tx.remove(sessionPlaces, workspaceId, placeOf(at, id));
  }
}
