/**
 * The attempts of one worker that wait to begin, in the order of their instants. Attempts begin in turns of their own, a few at a
 * time, so that many jobs that are due at once hold up nobody. A workspace that has none in progress begins one even if all places are
 * taken, so that jobs without an end of one workspace do not stop those of others. An attempt that finds no room in a limit waits
 * again, and so do the other attempts of the same owner, until an attempt ends or a pause is over. The line is in memory: the next
 * process makes it anew from the stored attempts.
 */

/** The most attempts that are in progress at once in a worker, except for the first one of each workspace. */
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
  readonly workspaceId: string;
  /** The owner of the job in its workspace, whose limits the attempt needs room in. */
  readonly holder: string;
  /**
   * Carries the attempt out. Resolves once its place is free for another attempt: with false when there was no room, and the attempt
   * is in the line again.
   */
  readonly carryOut: () => Promise<boolean>;
}

/** The attempts of one workspace. */
interface Share {
  waiting: number;
  inProgress: number;
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
  /** The workspaces that have attempts here. */
  readonly #shares = new Map<string, Share>();
  #inProgress = 0;
  /** How many workspaces have attempts that wait and none in progress. */
  #withoutPlace = 0;
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
    this.#count(attempt, 1, 0);
    this.#beginSoon();
  }

  /** Takes an attempt out of the line. Returns false when it has begun. */
  remove(attempt: WaitingAttempt): boolean {
    const at = this.#waiting.indexOf(attempt);
    if (at >= 0) this.#takeAt(at);
    return at >= 0;
  }

  #takeAt(at: number): WaitingAttempt | undefined {
    const [attempt] = this.#waiting.splice(at, 1);
    if (attempt !== undefined) this.#count(attempt, -1, 0);
    return attempt;
  }

  /** Counts attempts of a workspace that wait or are in progress in addition to the others, or fewer of them. */
  #count({ workspaceId }: WaitingAttempt, waiting: number, inProgress: number): void {
    const share = this.#shares.get(workspaceId) ?? { waiting: 0, inProgress: 0 };
    if (isWithoutPlace(share)) this.#withoutPlace--;
    share.waiting += waiting;
    share.inProgress += inProgress;
    this.#inProgress += inProgress;
    if (isWithoutPlace(share)) this.#withoutPlace++;
    if (share.waiting + share.inProgress === 0) this.#shares.delete(workspaceId);
    else this.#shares.set(workspaceId, share);
  }

  get #isFull(): boolean {
    return this.#inProgress >= MAX_IN_PROGRESS;
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
    if (this.#waiting.length === 0 || (this.#isFull && this.#withoutPlace === 0)) return;
    this.#turn = setImmediate(() => this.#begin());
  }

  #begin(): void {
    this.#turn = undefined;
    const endMs = performance.now() + MAX_TURN_MS;
    while (!this.#isFull || this.#withoutPlace > 0) {
      if (performance.now() >= endMs) {
        this.#beginSoon();
        return;
      }
      const attempt = this.#takeNext();
      if (attempt === undefined) return;
      this.#carryOut(attempt);
    }
  }

  /**
   * Takes the first attempt that may have a place and whose owner is not paused. When there is none, a timer is set to the end of the
   * first pause.
   */
  #takeNext(): WaitingAttempt | undefined {
    const nowMs = performance.now();
    const isFull = this.#isFull;
    const at = this.#waiting.findIndex(
      ({ holder, workspaceId }) =>
        (!isFull || this.#shares.get(workspaceId)?.inProgress === 0) &&
        (this.#paused.get(holder)?.untilMs ?? 0) <= nowMs,
    );
    if (at >= 0) return this.#takeAt(at);
    if (this.#waiting.length === 0) return undefined;
    // A pause that is over belongs to an owner whose workspace waits for a place.
    const pauses = [...this.#paused.values()].map(({ untilMs }) => untilMs - nowMs).filter((ms) => ms > 0);
    clearTimeout(this.#timer);
    if (pauses.length > 0) this.#timer = setTimeout(() => this.#beginSoon(), Math.min(...pauses)).unref();
    return undefined;
  }

  #carryOut(attempt: WaitingAttempt): void {
    const { holder, carryOut } = attempt;
    this.#count(attempt, 0, 1);
    const leave = (hadRoom: boolean) => {
      this.#count(attempt, 0, -1);
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

function isWithoutPlace({ waiting, inProgress }: Share): boolean {
  return waiting > 0 && inProgress === 0;
}
