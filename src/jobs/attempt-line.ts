/**
 * The attempts of one worker that wait to begin, in the order of their instants. Attempts begin in turns of their own, a few at a
 * time, so that many jobs that are due at once hold up nobody. An attempt that finds no room in a limit waits again, and so do the other
 * attempts of the same owner, until an attempt ends or a pause is over. The line is in memory: the next process makes it anew from the
 * stored attempts.
 */

/** The most attempts that are in progress at once in a worker. */
export const MAX_IN_PROGRESS = 8;
/** How long the attempts that begin may hold the event loop in one turn. */
const MAX_TURN_MS = 4;
/**
 * The first pause of an owner for whom there was no room. Each further pause is twice as long, up to the time after which a refused
 * client tries again.
 */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 5000;

/** An attempt that waits. */
export interface WaitingAttempt {
  /** The instant of its occurrence, in milliseconds since 1970. */
  readonly dueMs: number;
  /** The owner of the job in its workspace, whose limits the attempt needs room in. */
  readonly holder: string;
  /**
   * Carries the attempt out. Resolves once its place is free for another attempt: with false when there was no room, and the attempt
   * is in the line again.
   */
  readonly carryOut: () => Promise<boolean>;
}

interface Pause {
  readonly ms: number;
  /** The end of the pause on the clock of `performance`. */
  readonly untilMs: number;
}

export class AttemptLine implements Disposable {
  readonly #waiting: WaitingAttempt[] = [];
  /** The owners for whom there was no room. */
  readonly #paused = new Map<string, Pause>();
  #inProgress = 0;
  #turn: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;
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
    while (this.#inProgress < MAX_IN_PROGRESS) {
      if (performance.now() >= endMs) {
        this.#beginSoon();
        return;
      }
      const attempt = this.#takeNext();
      if (attempt === undefined) return;
      this.#carryOut(attempt);
    }
  }

  /** Takes the first attempt whose owner is not paused. When there is none, a timer is set to the end of the first pause. */
  #takeNext(): WaitingAttempt | undefined {
    const nowMs = performance.now();
    const at = this.#waiting.findIndex(({ holder }) => (this.#paused.get(holder)?.untilMs ?? 0) <= nowMs);
    if (at >= 0) return this.#waiting.splice(at, 1)[0];
    if (this.#waiting.length === 0) return undefined;
    const untilMs = Math.min(...[...this.#paused.values()].map((pause) => pause.untilMs));
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#beginSoon(), Math.max(0, untilMs - nowMs)).unref();
    return undefined;
  }

  #carryOut({ holder, carryOut }: WaitingAttempt): void {
    this.#inProgress++;
    const leave = (hadRoom: boolean) => {
      this.#inProgress--;
      if (hadRoom) this.#paused.delete(holder);
      else this.#pause(holder);
      this.#beginSoon();
    };
    carryOut().then(leave, () => leave(true));
  }

  #pause(holder: string): void {
    const before = this.#paused.get(holder)?.ms ?? FIRST_PAUSE_MS / 2;
    const ms = Math.min(2 * before, MAX_PAUSE_MS);
    this.#paused.set(holder, { ms, untilMs: performance.now() + ms });
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearImmediate(this.#turn);
    clearTimeout(this.#timer);
    this.#waiting.length = 0;
  }
}
