/**
 * The attempts of one worker that wait to begin, in the order of their instants. Attempts begin in turns of their own, a few at a
 * time, so that many jobs that are due at once hold up nobody. The line is in memory: the next process makes it anew from the stored
 * attempts.
 */

/** The most attempts that are in progress at once in a worker. */
export const MAX_IN_PROGRESS = 8;
/** How long the attempts that begin may hold the event loop in one turn. */
const MAX_TURN_MS = 4;

/** An attempt that waits. */
export interface WaitingAttempt {
  /** The instant of its occurrence, in milliseconds since 1970. */
  readonly dueMs: number;
  /** Carries the attempt out. Resolves once its place is free for another attempt. */
  readonly carryOut: () => Promise<void>;
}

export class AttemptLine implements Disposable {
  readonly #waiting: WaitingAttempt[] = [];
  #inProgress = 0;
  #turn: NodeJS.Immediate | undefined;
  #isClosed = false;

  /** How many attempts wait. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Adds an attempt after all that have an earlier instant or the same one. */
  add(attempt: WaitingAttempt): void {
    this.#waiting.splice(this.#placeOf(attempt.dueMs), 0, attempt);
    this.#beginSoon();
  }

  /** Takes an attempt out of the line. Returns false when it has begun. */
  remove(attempt: WaitingAttempt): boolean {
    const at = this.#waiting.indexOf(attempt);
    if (at >= 0) this.#waiting.splice(at, 1);
    return at >= 0;
  }

  #placeOf(dueMs: number): number {
    let from = 0;
    let to = this.#waiting.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((this.#waiting[middle]?.dueMs ?? 0) <= dueMs) from = middle + 1;
      else to = middle;
    }
    return from;
  }

  /** An attempt never begins in the turn that adds it: the run before it may still be ending in that turn. */
  #beginSoon(): void {
    if (this.#turn !== undefined || this.#isClosed) return;
    if (this.#waiting.length === 0 || this.#inProgress >= MAX_IN_PROGRESS) return;
    this.#turn = setImmediate(() => this.#begin());
  }

  #begin(): void {
    this.#turn = undefined;
    const endMs = performance.now() + MAX_TURN_MS;
    while (this.#inProgress < MAX_IN_PROGRESS && performance.now() < endMs) {
      const attempt = this.#waiting.shift();
      if (attempt === undefined) return;
      this.#inProgress++;
      const leave = () => {
        this.#inProgress--;
        this.#beginSoon();
      };
      attempt.carryOut().then(leave, leave);
    }
    this.#beginSoon();
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearImmediate(this.#turn);
    this.#waiting.length = 0;
  }
}
