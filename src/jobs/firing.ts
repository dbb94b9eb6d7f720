/**
 * Decides what happens at the instants of a job: which of them fires, and which are skipped with which reason. A decision is one
 * turn and so one commit: the occurrences, the next instant, the job's place and its state. So each instant has exactly one
 * occurrence, whenever the server dies.
 */

import type { JobReason } from '#machines/job.ts';
import type { Role } from '#src/base/caller/role.ts';
import { newId, type OccurrenceId, type UserId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Occurrence } from '#src/contract/wire/job.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import type { Attempts } from './attempts.ts';
import { type JobStates, type StoredJob, timetableOf } from './job-states.ts';
import { instantAfter, lastInstants } from './schedule.ts';

/** The rights of users, and the notebooks of jobs, as they are at a firing. */
export interface FiringRights {
  /** Returns the present role of a user in a workspace; undefined when the user is not a member. */
  roleOf(workspaceId: WorkspaceId, userId: UserId): Role | undefined;
  /** Returns whether a role may submit runs. */
  maySubmit(role: Role): boolean;
  notebookExists(workspaceId: WorkspaceId, notebookId: string): boolean;
}

/** How many missed instants have a record of their own. Earlier ones share one record. */
const MAX_MISSED = 100;
/** With `catchUp: none`, an instant that is later than this is skipped. */
const MAX_LATE_MS = 60_000;

const OVERLAP: JobReason = {
  code: 'overlap',
  message: 'The occurrence before this one was still in progress.',
};
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
  readonly #attempts: Pick<Attempts, 'begin'>;
  readonly #rights: FiringRights;

  constructor(
    context: Pick<PlaneContext, 'store'>,
    states: JobStates,
    attempts: Pick<Attempts, 'begin'>,
    rights: FiringRights,
  ) {
    this.#context = context;
    this.#states = states;
    this.#attempts = attempts;
    this.#rights = rights;
  }

  /** Does what a job is due to do at `nowMs`: the next attempt, or the instants that have come. */
  attend(job: ActorId, nowMs: number): void {
    const stored = this.#states.find(job.workspaceId, job.id);
    const peek = this.#states.actors.restore(job);
    if (stored === undefined || peek === undefined) return;
    const { occurrence, nextMs, isPaused } = peek.snapshot.context;
    if (!isPaused && nextMs !== null && nextMs <= nowMs) this.#meet(job, stored, nextMs, nowMs);
    const retryAtMs = occurrence?.retryAtMs ?? null;
    if (occurrence === null || retryAtMs === null || retryAtMs > nowMs) return;
    const refusal = this.#refusal(job.workspaceId, stored);
    if (refusal === undefined) {
      this.#states.tell(job, { type: 'retry' });
      this.#attempts.begin(job, stored);
      return;
    }
    this.#states.tell(job, { type: 'over', failure: refusal, retryAtMs: null });
    this.#states.changeOccurrence(job, occurrence.id, {
      status: 'failed',
      reason: refusal,
      finishedAt: timestamp(nowMs),
    });
    this.#states.tell(job, { type: 'pause', reason: refusal });
  }

  /** Fires a job now, in the name of the user `by`. Returns the occurrence. Throws `job_running`. */
  fire(job: ActorId, stored: StoredJob, by: UserId): Occurrence {
    const { store } = this.#context;
    const id = newId<OccurrenceId>('occurrence');
    const nowMs = Date.now();
    const event = { type: 'fire', occurrenceId: id, dueMs: nowMs } as const;
    this.#states.check(job, event);
    const refusal = this.#refusal(job.workspaceId, stored);
    const fired = {
      ...this.#occurrence(job, nowMs, refusal),
      id,
      trigger: 'person',
      firedBy: by,
    } as const;
    store.write((tx) => this.#states.addOccurrences(tx, job, [fired]));
    if (refusal !== undefined) {
      this.#states.tell(job, { type: 'pause', reason: refusal });
      return fired;
    }
    this.#states.tell(job, event);
    this.#attempts.begin(job, stored);
    return fired;
  }

  /** Gives each instant from `firstMs` to `nowMs` its occurrence, and fires the last one if the job allows it. */
  #meet(job: ActorId, stored: StoredJob, firstMs: number, nowMs: number): void {
    const { store } = this.#context;
    const timetable = timetableOf(stored);
    const found = lastInstants(timetable, { afterMs: firstMs - 1, untilMs: nowMs, count: MAX_MISSED + 1 });
    // The schedule may have been changed since the instant was stored; it is met in any case.
    const instants = found.length === 0 ? [firstMs] : found;
    const [earliestMs = firstMs] = instants;
    const lastMs = instants.at(-1) ?? firstMs;
    const nextMs = instantAfter(timetable, Math.max(lastMs, nowMs));
    const isActive = this.#states.actors.peek(job)?.snapshot.context.occurrence !== null;
    const isLate = stored.definition.catchUp === 'none' && nowMs - lastMs > MAX_LATE_MS;
    const refusal = this.#refusal(job.workspaceId, stored);
    const obstacle = isActive ? OVERLAP : (refusal ?? (isLate ? LATE : undefined));
    const missed = obstacle === LATE ? LATE : isActive ? OVERLAP : MISSED;
    const older = earliestMs > firstMs ? [this.#older(job, timetable, firstMs, earliestMs, missed)] : [];
    const skipped = instants.slice(0, -1).map((ms) => this.#occurrence(job, ms, missed));
    const last = this.#occurrence(job, lastMs, obstacle);
    store.write((tx) => this.#states.addOccurrences(tx, job, [...older, ...skipped, last]));
    if (obstacle !== undefined) {
      this.#states.tell(job, { type: 'skip', nextMs });
      if (refusal !== undefined && !isActive) this.#states.tell(job, { type: 'pause', reason: refusal });
      return;
    }
    this.#states.tell(job, {
      type: 'due',
      occurrenceId: last.id as OccurrenceId,
      dueMs: lastMs,
      nextMs,
    });
    this.#attempts.begin(job, stored);
  }

  /** Returns one record for all instants from `firstMs` to the last one before `beforeMs`. */
  #older(
    job: ActorId,
    timetable: ReturnType<typeof timetableOf>,
    firstMs: number,
    beforeMs: number,
    reason: JobReason,
  ): Occurrence {
    const range = { afterMs: firstMs - 1, untilMs: beforeMs - 1, count: 1 };
    const [lastMs = firstMs] = lastInstants(timetable, range);
    const occurrence = this.#occurrence(job, firstMs, reason);
    return lastMs > firstMs ? { ...occurrence, lastDueAt: timestamp(lastMs) } : occurrence;
  }

  /** Returns a new occurrence, which is skipped when there is a reason. */
  #occurrence(job: ActorId, dueMs: number, reason: JobReason | undefined): Occurrence {
    const isSkipped = reason !== undefined;
    const now = timestamp();
    return {
      id: newId<OccurrenceId>('occurrence'),
      jobId: job.id,
      trigger: 'schedule',
      dueAt: timestamp(dueMs),
      status: isSkipped ? 'skipped' : 'due',
      reason: reason ?? null,
      attempts: isSkipped ? 0 : 1,
      runId: null,
      startedAt: isSkipped ? null : now,
      finishedAt: isSkipped ? now : null,
    };
  }

  /** Returns why the job may not work now; undefined when it may. */
  #refusal(workspaceId: WorkspaceId, { record, definition }: StoredJob): JobReason | undefined {
    const { ownerId } = record;
    const { notebookId } = definition.target;
    const role = this.#rights.roleOf(workspaceId, ownerId as UserId);
    if (role === undefined)
      return {
        code: 'owner_left',
        message: `The owner of the job, ${ownerId}, is no longer a member of the workspace. An owner of the workspace can take the job over.`,
      };
    if (!this.#rights.maySubmit(role))
      return {
        code: 'role_too_low',
        message: `The owner of the job, ${ownerId}, has the role ${role} and may not run notebooks any more.`,
      };
    if (!this.#rights.notebookExists(workspaceId, notebookId))
      return { code: 'notebook_deleted', message: `The notebook ${notebookId} was deleted.` };
    return undefined;
  }
}
