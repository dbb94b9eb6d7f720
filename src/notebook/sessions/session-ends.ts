/**
 * The index of sessions that end by themselves, by the time of their next check. The home of a session writes the index: when the
 * session is opened or closed, when it leaves memory, and when `EndingSessions` finds it in use. A use of the session writes
 * nothing.
 */
import type { Lifetime } from '#machines/notebook-session.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { SYSTEM } from '#storage/keys.ts';
import { endPlaceOf, type SessionEnd, sessionEndPlaces, sessionEnds } from '#storage/records/sessions.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';

export class SessionEnds {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Records the lifetime of a session that is opened at `at`. */
  opened(session: ActorId, at: string, { ttlS, idleTimeoutS }: Lifetime): void {
    const openedMs = Date.parse(at);
    const expiresMs = ttlS === null ? null : openedMs + ttlS * 1000;
    const idleMs = idleTimeoutS === null ? null : idleTimeoutS * 1000;
    if (expiresMs !== null || idleMs !== null)
      this.#lookAgain(session, { expiresMs, idleMs }, openedMs, false);
    else if (this.of(session) !== undefined) this.#store.write((tx) => this.erase(tx, session));
  }

  /** Returns the entry of a session; undefined when the session does not end by itself. */
  of({ workspaceId, id }: ActorId): SessionEnd | undefined {
    return this.#store.get(sessionEnds, workspaceId, id);
  }

  /**
   * Records that a session was last used at `usedMs`, in milliseconds since 1970, and sets its next check. `isExact`: this
   * use is the last one until the session comes back into memory.
   */
  used(session: ActorId, usedMs: number, isExact: boolean): void {
    const end = this.of(session);
    if (end !== undefined && end.endingIn === undefined) this.#lookAgain(session, end, usedMs, isExact);
  }

  /** Records that a session comes into memory, where it can be used. */
  loaded(session: ActorId): void {
    const end = this.of(session);
    if (end?.isExact === true) this.#put(session, { ...end, isExact: false });
  }

  /** Records the last use of a session that leaves memory. */
  leaving(live: Pick<LiveNotebook, 'workspaceId' | 'sessionId' | 'usedAtMs'>): void {
    const { workspaceId, sessionId: id } = live;
    this.used({ workspaceId, id }, lastUseOf(live), true);
  }

  /**
   * Records that a session is about to be ended, so that its environment is closed afterwards even if the server dies meanwhile.
   */
  ending(session: ActorId, environmentId: string): void {
    const end = this.of(session);
    if (end !== undefined) this.#put(session, { ...end, endingIn: environmentId });
  }

  /** Records that a session was closed. Its entry is removed, unless its environment must still be closed. */
  closed(session: ActorId): void {
    const end = this.of(session);
    if (end !== undefined && end.endingIn === undefined) this.#store.write((tx) => this.erase(tx, session));
  }

  /** Removes the entry of a session. */
  erase(tx: Transaction, { workspaceId, id }: ActorId): void {
    const end = tx.get(sessionEnds, workspaceId, id);
    if (end === undefined) return;
    tx.remove(sessionEnds, workspaceId, id);
    tx.remove(sessionEndPlaces, SYSTEM, end.place);
  }

  #lookAgain(
    session: ActorId,
    { expiresMs, idleMs }: Pick<SessionEnd, 'expiresMs' | 'idleMs'>,
    usedMs: number,
    isExact: boolean,
  ): void {
    const dueMs = Math.min(
      expiresMs ?? Number.POSITIVE_INFINITY,
      idleMs === null ? Number.POSITIVE_INFINITY : usedMs + idleMs,
    );
    const place = endPlaceOf(dueMs, session.workspaceId, session.id);
    this.#put(session, { expiresMs, idleMs, place, isExact });
  }

  #put({ workspaceId, id }: ActorId, end: SessionEnd): void {
    if (this.#store.isReadOnly) return;
    this.#store.write((tx) => {
      const before = tx.get(sessionEnds, workspaceId, id);
      if (before !== undefined && before.place !== end.place)
        tx.remove(sessionEndPlaces, SYSTEM, before.place);
      tx.put(sessionEnds, end, workspaceId, id);
      tx.mark(sessionEndPlaces, SYSTEM, end.place);
    });
  }
}

/** Returns when a session in memory was last used, in milliseconds since 1970. */
export function lastUseOf({ usedAtMs }: Pick<LiveNotebook, 'usedAtMs'>): number {
  return Date.now() - (performance.now() - usedAtMs);
}
