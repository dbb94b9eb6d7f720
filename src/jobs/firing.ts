/**
 * Decides what happens at the instants of a job: which of them fires, and which are skipped with which reason. A decision is one
 * turn and so one commit: the occurrences, the next instant, the job's place and its state. So each instant has exactly one
 * occurrence, whenever the server dies.
 */

import type { JobContext, JobReason, QueuedOccurrence } from '#machines/job.ts';
import type { OccurrenceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { Attempts } from './attempts.ts';
import { type JobStates, OVERLAP, type StoredJob, skippedNow, timetableOf } from './job-states.ts';
import { instantAfter, lastInstants } from './schedule.ts';
import type { Targets } from './targets.ts';

/** The part of the attempts that decisions use. */
type Begun = Pick<Attempts, 'begin' | 'supersede'>;
/** The part of the targets that decisions use. */
type Obstacles = Pick<Targets, 'refusal' | 'obstacle'>;

/** The instants that have come, in milliseconds since 1970. */
interface Instants {
  /** The earliest one. It may be earlier than the first of `latest`. */
  readonly firstMs: number;
  /** The latest ones, the newest last. */
  readonly latest: readonly number[];
  readonly nextMs: number | null;
}

/** Who or what fires a job out of its schedule. */
export type FiredBy = Pick<Occurrence, 'firedBy' | 'hookInId' | 'arguments'> & {
  readonly trigger: 'person' | 'hook';
};

/** How many missed instants have a record of their own, and fire with `catchUp: all`. Earlier ones share one record. */
const MAX_MISSED = 100;
/** With `catchUp: none`, an instant that is later than this is skipped. */
const MAX_LATE_MS = 60_000;

const MISSED: JobReason = {
  code: 'missed',
  message: 'The server was not running at this time, and a later instant has fired in its place.',
};
const LATE: JobReason = {
  code: 'missed',
  message: 'The server was not running at this time, and the job does not catch up.',
};

export class Firing {
  readonly #context: Pick<PlaneContext, 'store'>;
  readonly #states: JobStates;
  readonly #attempts: Begun;
  readonly #targets: Obstacles;

  constructor(context: Pick<PlaneContext, 'store'>, states: JobStates, attempts: Begun, targets: Obstacles) {
    this.#context = context;
    this.#states = states;
    this.#attempts = attempts;
    this.#targets = targets;
  }

  /** Does what a job is due to do at `nowMs`: the next attempt, or the instants that have come. */
  attend(job: ActorId, nowMs: number): void {
    const stored = this.#states.find(job.workspaceId, job.id);
    const peek = this.#states.actors.restore(job);
    if (stored === undefined || peek === undefined) return;
    const { nextMs, isPaused } = peek.snapshot.context;
    if (!isPaused && nextMs !== null && nextMs <= nowMs) this.#meet(job, stored, nextMs, nowMs);
    // Read now: the instant may have taken the place of the occurrence that waited for its next attempt.
    const occurrence = this.#states.actors.peek(job)?.snapshot.context.occurrence ?? null;
    const retryAtMs = occurrence?.retryAtMs ?? null;
    if (occurrence === null || retryAtMs === null || retryAtMs > nowMs) return;
    const refusal = this.#targets.refusal(job.workspaceId, stored);
    if (refusal === undefined) {
      this.#states.tell(job, { type: 'retry' });
      this.#attempts.begin(job, stored);
      return;
    }
    this.#states.changeOccurrence(job, occurrence.id, {
      status: 'failed',
      reason: refusal,
      finishedAt: timestamp(nowMs),
    });
    // First the pause, so that no queued occurrence begins.
    this.#states.tell(job, { type: 'pause', reason: refusal });
    this.#states.tell(job, { type: 'over', failure: refusal, retryAtMs: null });
  }

  /** Fires a job now, by a user or a hook. Returns the occurrence. Throws `job_running`. */
  fire(job: ActorId, stored: StoredJob, by: FiredBy): Occurrence {
    const { store } = this.#context;
    const id = this.#states.newOccurrenceId(job);
    const nowMs = Date.now();
    const event = { type: 'fire', occurrenceId: id, dueMs: nowMs } as const;
    this.#states.check(job, event);
    const refusal = this.#targets.refusal(job.workspaceId, stored);
    const obstacle = refusal ?? this.#targets.obstacle(job.workspaceId, stored);
    const fired = {
      ...this.#occurrence(job, nowMs, obstacle),
      id,
      ...by,
    } as const;
    store.write((tx) => this.#states.addOccurrences(tx, job, [fired]));
    if (refusal !== undefined) this.#states.tell(job, { type: 'pause', reason: refusal });
    if (obstacle !== undefined) return fired;
    this.#states.tell(job, event);
    this.#attempts.begin(job, stored);
    return fired;
  }

  /** Gives each instant from `firstMs` to `nowMs` its occurrence, and fires or queues those that the job allows. */
  #meet(job: ActorId, stored: StoredJob, firstMs: number, nowMs: number): void {
    const context = this.#states.actors.peek(job)?.snapshot.context;
    if (context === undefined) return;
    const { catchUp, overlap } = stored.definition;
    const timetable = timetableOf(stored);
    const count = catchUp === 'all' ? MAX_MISSED : MAX_MISSED + 1;
    const found = lastInstants(timetable, { afterMs: firstMs - 1, untilMs: nowMs, count });
    // The schedule may have been changed since the instant was stored; it is met in any case.
    const latest = found.length === 0 ? [firstMs] : found;
    const lastMs = latest.at(-1) ?? firstMs;
    const instants = { firstMs, latest, nextMs: instantAfter(timetable, Math.max(lastMs, nowMs)) };
    const isActive = context.occurrence !== null;
    const isLate = nowMs - lastMs > MAX_LATE_MS;
    if (isActive && overlap === 'skip' && !(catchUp === 'all' && isMissed(instants, isLate))) {
      this.#skip(job, stored, instants, catchUp === 'none' && isLate ? LATE : OVERLAP);
      return;
    }
    const refusal = this.#targets.refusal(job.workspaceId, stored);
    if (refusal !== undefined) {
      this.#skip(job, stored, instants, refusal);
      this.#states.tell(job, { type: 'pause', reason: refusal });
    } else if (catchUp === 'all' && (!isActive || isMissed(instants, isLate)))
      this.#catchUp(job, stored, instants, context);
    else if (catchUp === 'none' && isLate) this.#skip(job, stored, instants, LATE);
    else if (isActive && overlap === 'cancel') this.#supersede(job, stored, instants, context);
    else if (isActive && context.queue.length > 0) this.#skip(job, stored, instants, OVERLAP);
    else if (isActive) this.#queue(job, stored, instants);
    else {
      const obstacle = this.#targets.obstacle(job.workspaceId, stored);
      if (obstacle !== undefined) this.#skip(job, stored, instants, obstacle);
      else this.#fire(job, stored, instants);
    }
  }

  /** Skips all instants. */
  #skip(job: ActorId, stored: StoredJob, instants: Instants, reason: JobReason): void {
    const isOfJob = reason === OVERLAP || reason === LATE;
    this.#add(job, stored, instants, isOfJob ? reason : MISSED, reason);
    this.#states.tell(job, { type: 'skip', nextMs: instants.nextMs });
  }

  /** Fires the last instant of a job without an occurrence. */
  #fire(job: ActorId, stored: StoredJob, instants: Instants): void {
    const last = this.#add(job, stored, instants, MISSED, undefined);
    this.#states.tell(job, { type: 'due', ...last, nextMs: instants.nextMs });
    this.#attempts.begin(job, stored);
  }

  /** Keeps the last instant until the occurrence in progress is over. */
  #queue(job: ActorId, stored: StoredJob, instants: Instants): void {
    const { occurrenceId, dueMs } = this.#add(job, stored, instants, OVERLAP, undefined, 'queued');
    const queue = [{ id: occurrenceId, dueMs }];
    this.#states.tell(job, { type: 'queue', queue, nextMs: instants.nextMs });
  }

  /** Puts the last instant in the place of the occurrence in progress, at once or as soon as its run has been cancelled. */
  #supersede(job: ActorId, stored: StoredJob, instants: Instants, { occurrence }: JobContext): void {
    if (occurrence === null) return;
    const hasRun = occurrence.runId !== null;
    const last = this.#add(job, stored, instants, OVERLAP, undefined, hasRun ? 'queued' : 'due');
    this.#states.tell(job, { type: 'supersede', ...last, nextMs: instants.nextMs });
    if (!hasRun) this.#attempts.begin(job, stored);
    this.#attempts.supersede(job, occurrence.id, occurrence.attempt);
  }

  /** Fires the oldest of the missed instants, and queues the others after the instants that wait already. */
  #catchUp(job: ActorId, stored: StoredJob, instants: Instants, { occurrence, queue }: JobContext): void {
    const { latest, nextMs } = instants;
    const isActive = occurrence !== null;
    const room = MAX_MISSED - latest.length;
    const dropped = queue.slice(0, Math.max(0, queue.length - room));
    for (const { id } of dropped) this.#states.changeOccurrence(job, id, skippedNow(MISSED));
    // The ids of occurrences are in the order of their instants.
    const older = this.#older(job, timetableOf(stored), instants, MISSED);
    const added = latest.map((ms, i) =>
      this.#occurrence(job, ms, undefined, isActive || i > 0 ? 'queued' : 'due'),
    );
    this.#context.store.write((tx) => this.#states.addOccurrences(tx, job, [...older, ...added]));
    const waiting: QueuedOccurrence[] = added.map(({ id }, i) => ({
      id: id as OccurrenceId,
      dueMs: latest[i] ?? 0,
    }));
    const [first] = waiting;
    if (isActive || first === undefined) {
      const all = [...queue.slice(dropped.length), ...waiting];
      this.#states.tell(job, { type: 'queue', queue: all, nextMs });
      return;
    }
    this.#states.tell(job, { type: 'due', occurrenceId: first.id, dueMs: first.dueMs, nextMs });
    if (waiting.length > 1) this.#states.tell(job, { type: 'queue', queue: waiting.slice(1), nextMs });
    this.#attempts.begin(job, stored);
  }

  /** Stores the occurrences of all instants. Those before the last are skipped. Returns the last one. */
  #add(
    job: ActorId,
    stored: StoredJob,
    instants: Instants,
    missed: JobReason,
    reason: JobReason | undefined,
    status?: 'queued' | 'due',
  ): { readonly occurrenceId: OccurrenceId; readonly dueMs: number } {
    const { latest, firstMs } = instants;
    const dueMs = latest.at(-1) ?? firstMs;
    const older = this.#older(job, timetableOf(stored), instants, missed);
    const skipped = latest.slice(0, -1).map((ms) => this.#occurrence(job, ms, missed));
    const last = this.#occurrence(job, dueMs, reason, status);
    this.#context.store.write((tx) => this.#states.addOccurrences(tx, job, [...older, ...skipped, last]));
    return { occurrenceId: last.id as OccurrenceId, dueMs };
  }

  /** Returns one record for all instants before the latest ones; none when there is no such instant. */
  #older(
    job: ActorId,
    timetable: ReturnType<typeof timetableOf>,
    { firstMs, latest }: Instants,
    reason: JobReason,
  ): Occurrence[] {
    const [earliestMs = firstMs] = latest;
    if (earliestMs <= firstMs) return [];
    const range = { afterMs: firstMs - 1, untilMs: earliestMs - 1, count: 1 };
    const [lastMs = firstMs] = lastInstants(timetable, range);
    const occurrence = this.#occurrence(job, firstMs, reason);
    return [lastMs > firstMs ? { ...occurrence, lastDueAt: timestamp(lastMs) } : occurrence];
  }

  /** Returns a new occurrence, which is skipped when there is a reason. */
  #occurrence(
    job: ActorId,
    dueMs: number,
    reason: JobReason | undefined,
    status: 'queued' | 'due' = 'due',
  ): Occurrence {
    return {
      id: this.#states.newOccurrenceId(job),
      jobId: job.id,
      trigger: 'schedule',
      dueAt: timestamp(dueMs),
      status,
      reason: null,
      attempts: status === 'due' ? 1 : 0,
      runId: null,
      startedAt: null,
      finishedAt: null,
      ...(reason === undefined ? {} : { attempts: 0, ...skippedNow(reason) }),
    };
  }
}

/** Returns whether instants have come while nobody attended to the job: several at once, or one that is more than a minute late. */
function isMissed({ firstMs, latest }: Instants, isLate: boolean): boolean {
  return latest.length > 1 || latest[0] !== firstMs || isLate;
}
