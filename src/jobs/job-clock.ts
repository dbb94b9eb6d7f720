/**
 * The time of all jobs of one worker: one timer, set to the first place of the worker's slots. It owns the timer.
 *
 * A worker keeps one number for each slot, however many jobs there are. Nothing is read from the store before a job is due. The
 * timer is never set for longer than a minute, so that a clock that was set forward is noticed.
 */

import { timeOfText } from '#src/base/ids.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { SLOTS } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { jobAt, jobPlaces, jobPlacesUntil, slotText } from '#storage/records/jobs.ts';
import { type JobStates, jobIdOf, type StoredJob } from './job-states.ts';

/** The longest time for which the timer is set. */
const MAX_WAIT_MS = 60_000;
/** How long the jobs that are due may hold the event loop in one turn. */
const MAX_TURN_MS = 4;
/** How many places of a slot are read in one turn. */
const MAX_READ = 100;
/** The first pause of a job that could not be attended to. Each further pause is twice as long, up to the longest. */
const FIRST_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 300_000;
/** The most kinds of failures that are remembered, so that each is logged once. */
const MAX_KINDS = 100;

interface ClockContext {
  readonly store: PlaneContext['store'];
  readonly log: Pick<PlaneContext['log'], 'error'>;
  readonly cluster: Pick<PlaneContext['cluster'], 'owns'>;
}

/** The part of the states of jobs that their clock needs. */
interface TimedJobs extends Pick<JobStates, 'onPlace' | 'placeOf'> {
  find(workspaceId: string, jobId: string): Pick<StoredJob, 'record'> | undefined;
}

export interface JobClockParts {
  readonly attend: (job: ActorId, nowMs: number) => void;
  /** Returns whether the server is ending, so that nothing fires. */
  readonly isEnding: () => boolean;
}

interface Failure {
  readonly pauseMs: number;
  /** When the job is tried again, in milliseconds since 1970. */
  readonly untilMs: number;
}

export class JobClock implements Disposable {
  readonly #context: ClockContext;
  readonly #states: TimedJobs;
  readonly #parts: JobClockParts;
  /** For each slot with a job that needs attention: when the first one does, in milliseconds since 1970. */
  readonly #next = new Map<number, number>();
  /** The places of jobs that could not be attended to. Each is tried again after a pause, until the job leaves its place. */
  readonly #failed = new Map<string, Failure>();
  /** The kinds of failures that were logged. */
  readonly #logged = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #timerMs = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(context: ClockContext, states: TimedJobs, parts: JobClockParts) {
    this.#context = context;
    this.#states = states;
    this.#parts = parts;
    states.onPlace(({ slot, ms, left }) => {
      if (left !== null) this.#failed.delete(left);
      if (ms !== null) this.#note(slot, ms);
    });
  }

  /**
   * Returns how long the earliest job that needs attention has waited for it, in milliseconds; 0 when no job waits. A job that
   * could not be attended to waits, too.
   */
  overdueMs(nowMs: number): number {
    let firstMs = nowMs;
    for (const ms of this.#next.values()) if (ms < firstMs) firstMs = ms;
    for (const place of this.#failed.keys()) {
      const { workspaceId, jobId } = jobAt(place);
      if (this.#states.placeOf(workspaceId, jobId) === place) firstMs = Math.min(firstMs, timeOfText(place));
    }
    return nowMs - firstMs;
  }

  /** Looks for the first job of each slot, also for jobs that are overdue. Call it when slots have come to this worker. */
  look(): void {
    this.#context.store.refreshShared();
    this.#failed.clear();
    for (let slot = 0; slot < SLOTS; slot++) this.#lookAt(slot);
  }

  #lookAt(slot: number): void {
    const { store } = this.#context;
    const limit = this.#failed.size + 1;
    for (const { id: place } of [...store.list(jobPlaces, SYSTEM, [slotText(slot)], { limit })]) {
      const failure = this.#failed.get(place);
      if (failure !== undefined) this.#note(slot, failure.untilMs);
      else {
        if (this.#isHere(place)) this.#note(slot, timeOfText(place));
        return;
      }
    }
  }

  #isHere(place: string): boolean {
    const { workspaceId, jobId } = jobAt(place);
    const homeId = this.#states.find(workspaceId, jobId)?.record.homeId;
    // The place of a job that is gone is removed by any worker that finds it.
    return homeId === undefined || this.#context.cluster.owns(workspaceId, homeId);
  }

  #note(slot: number, ms: number): void {
    const known = this.#next.get(slot);
    if (known !== undefined && known <= ms) return;
    this.#next.set(slot, ms);
    if (ms < this.#timerMs) this.#set(ms);
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
    const { store } = this.#context;
    const nowMs = Date.now();
    const endMs = performance.now() + MAX_TURN_MS;
    const due = [...this.#next].filter(([, ms]) => ms <= nowMs);
    if (due.length > 0 && !this.#parts.isEnding()) store.refreshShared();
    for (const [slot] of this.#parts.isEnding() ? [] : due) {
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
    this.#set(Math.min(...this.#next.values()));
  }

  /** Attends to the jobs of a slot that are due. Returns whether none was left for a later turn. */
  #attendTo(slot: number, nowMs: number, endMs: number): boolean {
    const { store } = this.#context;
    // The failed ones may all be in front of the others.
    const due = { until: jobPlacesUntil(nowMs), limit: MAX_READ + this.#failed.size };
    const places = [...store.list(jobPlaces, SYSTEM, [slotText(slot)], due)];
    for (const { id: place } of places) {
      if ((this.#failed.get(place)?.untilMs ?? 0) > nowMs) continue;
      if (!this.#isHere(place)) return true;
      const { workspaceId, jobId } = jobAt(place);
      const present = this.#states.placeOf(workspaceId, jobId);
      if (present !== place) {
        // Moved in a turn that is not committed yet, or left behind by a job that is gone.
        if (present === null) store.write((tx) => tx.remove(jobPlaces, SYSTEM, slotText(slot), place));
        continue;
      }
      try {
        this.#parts.attend(jobIdOf(workspaceId, jobId), nowMs);
      } catch (error) {
        this.#fail(place, jobId, error, nowMs);
      }
      if (performance.now() >= endMs) return false;
    }
    return places.length < due.limit;
  }

  #fail(place: string, jobId: string, error: unknown, nowMs: number): void {
    const { pauseMs: before = FIRST_PAUSE_MS / 2 } = this.#failed.get(place) ?? {};
    const pauseMs = Math.min(2 * before, MAX_PAUSE_MS);
    this.#failed.set(place, { pauseMs, untilMs: nowMs + pauseMs });
    const kind = kindOf(error);
    if (this.#logged.has(kind) || this.#logged.size >= MAX_KINDS) return;
    this.#logged.add(kind);
    this.#context.log.error(
      { err: error, jobId },
      'a job could not be fired; it is tried again, and further failures of this kind are not logged',
    );
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Returns a text that failures of one kind have in common: the name of the error, and the place in the code that has thrown it. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  const [, place = ''] = /^ +at (.*)$/m.exec(error.stack ?? '') ?? [];
  return `${error.name} ${place}`;
}
