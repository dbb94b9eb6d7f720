/**
 * Ends sessions whose lifetime is over or that were unused for too long, and closes their environments. A sweep each second reads
 * only the sessions that are due. Owns a timer, which `dispose` ends.
 *
 * A session in memory knows its last use. When it leaves memory in order, its last use is stored (`isExact`). A crash, a restart
 * or a move to another worker loses the last use. The session then gets its whole time once more, because it must never end too
 * early.
 */

import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { SYSTEM } from '#storage/keys.ts';
import { endPlacesUntil, type SessionEnd, sessionAt, sessionEndPlaces } from '#storage/records/sessions.ts';
import type { NotebookContext } from './notebook-context.ts';
import type { NotebookSessionActors } from './notebook-session-actors.ts';
import { notebookStatusOf } from './notebook-session-record.ts';
import { lastUseOf } from './session-ends.ts';

const SWEEP_MS = 1000;
/**
 * How many sessions one sweep ends, because each may first need a kernel. Further sessions are due at the next sweep.
 */
const MAX_PER_SWEEP = 20;
/** How many places one sweep reads, including places of other workers. */
const MAX_READ = 1000;

export class EndingSessions implements Disposable {
  readonly #context: NotebookContext;
  readonly #actors: NotebookSessionActors;
  readonly #timer: NodeJS.Timeout;
  /** Sessions that could not be ended. Each of them is logged once, and later sweeps skip them. */
  readonly #failed = new Set<string>();

  constructor(context: NotebookContext, actors: NotebookSessionActors) {
    this.#context = context;
    this.#actors = actors;
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  #sweep(): void {
    const { store, cluster, log } = this.#context;
    store.refreshShared();
    const due = { until: endPlacesUntil(Date.now()), limit: MAX_READ };
    let count = 0;
    for (const { id: place } of [...store.list(sessionEndPlaces, SYSTEM, [], due)]) {
      const { workspaceId, sessionId } = sessionAt(place);
      if (!cluster.owns(workspaceId, sessionId) || this.#failed.has(place)) continue;
      try {
        this.#look({ workspaceId: workspaceId as WorkspaceId, id: sessionId }, place);
      } catch (error) {
        this.#failed.add(place);
        log.error({ err: error, sessionId }, 'a session could not be ended at its time');
      }
      if (++count === MAX_PER_SWEEP) return;
    }
  }

  /** Handles a session that is due: ends it, sets a later time, or closes the environment of a session that has ended. */
  #look(session: ActorId, place: string): void {
    const { store, ends } = this.#context;
    const actors = this.#actors;
    const end = ends.of(session);
    // The session was opened again, or its workspace deleted, after the place was read.
    if (end?.place !== place) {
      store.write((tx) => tx.remove(sessionEndPlaces, SYSTEM, place));
      return;
    }
    const peek = actors.peek(session);
    const isClosed = peek === undefined || (!peek.isLost && notebookStatusOf(peek) === 'closed');
    if (isClosed) this.#finish(session, end);
    else if (end.endingIn === undefined && this.#isOver(session, end)) this.#end(session);
  }

  /** Returns whether a session must end now. A session that was used recently is checked again later. */
  #isOver(session: ActorId, end: SessionEnd): boolean {
    const { liveNotebooks, ends } = this.#context;
    const actors = this.#actors;
    const nowMs = Date.now();
    if (end.expiresMs !== null && end.expiresMs <= nowMs) return true;
    if (end.idleMs === null) return false;
    const live = liveNotebooks.peek(session);
    const isFollowed = (liveNotebooks.streamOf(session)?.userCount ?? 0) > 0;
    if (live === undefined) {
      if (end.isExact && !isFollowed) return true;
      ends.used(session, nowMs, true);
      return false;
    }
    const isWorking = actors.peek(session)?.snapshot.context.work != null;
    if (isWorking || isFollowed || live.isShown) live.touch();
    const usedMs = lastUseOf(live);
    if (usedMs + end.idleMs <= nowMs) return true;
    ends.used(session, usedMs, false);
    return false;
  }

  #end(session: ActorId): void {
    const { ends, log } = this.#context;
    const actors = this.#actors;
    const environmentId = actors.peek(session)?.snapshot.context.environmentId;
    if (environmentId != null) ends.ending(session, environmentId);
    actors.tell(session, { type: 'close' });
    log.info({ sessionId: session.id }, 'a session has ended by itself: its time is over');
  }

  /** Closes the environment of a session that ended by itself and was closed. */
  #finish(session: ActorId, { endingIn }: SessionEnd): void {
    const { store, ends, environments } = this.#context;
    store.write((tx) => ends.erase(tx, session));
    if (endingIn === undefined) return;
    store.decide(() => {
      try {
        environments.close(session.workspaceId, endingIn);
      } catch (error) {
        // If other sessions are attached to the environment, or somebody has closed it, nothing is done.
        if (!(error instanceof AppError)) throw error;
      }
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
