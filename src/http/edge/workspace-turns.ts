/**
 * The turns of the event loop, divided among the workspaces whose requests arrive together, so that the requests of one workspace
 * do not wait for all those of another. As long as one workspace alone sends requests, nothing here costs anything.
 */

/** How long the requests of one workspace may hold the loop in one turn. A request that has begun is finished. */
const SHARE_MS = 2;
/** How long all waiting requests together may hold the loop in one turn. */
const TURN_MS = 8;
/** Workspaces share the loop for so long after another workspace than the last one has sent a request. */
const SHARED_MS = 10_000;

type Work = () => void;

export class WorkspaceTurns {
  /** The workspace of the last request. */
  #last: string | undefined;
  /** The time until which workspaces share the loop, of `performance.now()`. */
  #sharedUntilMs = 0;
  /** The milliseconds that the workspaces have used in this turn. */
  readonly #usedMs = new Map<string, number>();
  /** The requests that wait, by their workspace. The first workspace is the next one. */
  readonly #waiting = new Map<string, Work[]>();
  #isTurnCounted = false;

  /**
   * Notes a request of a workspace. Returns whether no other workspace has sent requests of late; true for a request without a
   * workspace.
   */
  isAlone(workspaceId: string | undefined): boolean {
    if (workspaceId === undefined) return true;
    if (workspaceId !== this.#last) {
      if (this.#last !== undefined) this.#sharedUntilMs = performance.now() + SHARED_MS;
      this.#last = workspaceId;
    }
    return this.#sharedUntilMs === 0 || this.#isOver();
  }

  /** Does the work of a request now, or in a later turn if its workspace has used up its share of this one. Returns whether it is done. */
  take(workspaceId: string, work: Work): boolean {
    if (!this.#waiting.has(workspaceId) && (this.#usedMs.get(workspaceId) ?? 0) < SHARE_MS) {
      this.#do(workspaceId, work);
      return true;
    }
    const waiting = this.#waiting.get(workspaceId);
    if (waiting === undefined) this.#waiting.set(workspaceId, [work]);
    else waiting.push(work);
    return false;
  }

  #isOver(): boolean {
    if (performance.now() < this.#sharedUntilMs || this.#waiting.size > 0) return false;
    this.#sharedUntilMs = 0;
    return true;
  }

  #do(workspaceId: string, work: Work): void {
    if (!this.#isTurnCounted) {
      this.#isTurnCounted = true;
      setImmediate(() => this.#nextTurn());
    }
    const beganAtMs = performance.now();
    try {
      work();
    } finally {
      const usedMs = performance.now() - beganAtMs;
      this.#usedMs.set(workspaceId, (this.#usedMs.get(workspaceId) ?? 0) + usedMs);
    }
  }

  /** Does waiting work, of one workspace after the other. */
  #nextTurn(): void {
    this.#isTurnCounted = false;
    this.#usedMs.clear();
    const endsAtMs = performance.now() + TURN_MS;
    for (const [workspaceId, works] of [...this.#waiting]) {
      works.splice(0, this.#doSome(workspaceId, works));
      this.#waiting.delete(workspaceId);
      if (works.length > 0) this.#waiting.set(workspaceId, works); // behind the other workspaces
      if (performance.now() >= endsAtMs) break;
    }
  }

  /** Does work of a workspace until its share is used up. Returns how many works that were. */
  #doSome(workspaceId: string, works: readonly Work[]): number {
    let done = 0;
    while (done < works.length && (this.#usedMs.get(workspaceId) ?? 0) < SHARE_MS)
      this.#do(workspaceId, works[done++]!);
    return done;
  }
}
