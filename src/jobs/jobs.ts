/** Creates, reads, lists, changes, fires and deletes jobs for the API. */

import { type JobEvent, jobStatus } from '#machines/job.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { type NamedLimit, refuseOverQuota } from '#src/base/errors/quota.ts';
import { isIdOf, type JobId, type WorkspaceId } from '#src/base/ids.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { isSameInstant, timestamp, timestampAfter } from '#src/base/time/clock.ts';
import type { Job, JobChange, NewJob, Occurrence } from '#src/contract/wire/job.ts';
import type { JobFilters } from '#src/contract/wire/lists.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { checkCursor, listingOf, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import { slicedListing } from '#storage/lists/sliced-listing.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import { type JobRecord, jobCounts, jobRecords, occurrenceRecords } from '#storage/records/jobs.ts';
import type { LimitOf } from '#storage/records/workspace-limits.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Firing } from './firing.ts';
import {
  type Definition,
  definitionIn,
  type JobStates,
  jobIdOf,
  occurrenceIn,
  type StoredJob,
  timetableOf,
} from './job-states.ts';
import { checkTimetable, instantAfter, instantsAfter, type Timetable } from './schedule.ts';
import { homeOf, isConversation, isOpenSession, type Targets } from './targets.ts';

/** The limit of the jobs of a workspace. */
const JOB_LIMIT: NamedLimit = { name: 'jobs', what: 'jobs' };
/** How many instants a job shows. */
const SHOWN_INSTANTS = 5;
/** The most occurrences that one commit of a deletion removes. */
const MAX_REMOVED = 200;
/** The longest time for which a job waits after the clock was set back, when a person changes its schedule or resumes it. */
const MAX_AHEAD_MS = 86_400_000;
/** The kind of the removals of jobs. */
const JOB = 'job';

export class Jobs {
  readonly #context: RunPlaneContext;
  readonly #states: JobStates;
  readonly #firing: Firing;
  readonly #targets: Targets;
  readonly #maxJobs: LimitOf;
  #onDelete: (tx: Transaction, job: ActorId) => void = () => undefined;

  /** `maxJobs` returns the most jobs of a workspace; 0 means no limit. */
  constructor(
    context: RunPlaneContext,
    states: JobStates,
    firing: Firing,
    targets: Targets,
    maxJobs: LimitOf,
  ) {
    this.#context = context;
    this.#states = states;
    this.#firing = firing;
    this.#targets = targets;
    this.#maxJobs = maxJobs;
    context.removals.define(JOB, (workspaceId, jobId) => this.#removeSome(workspaceId, jobId));
  }

  /**
   * Creates a job whose owner is the caller. Call it in a shared turn, in the home of the target. Throws `not_found` for an
   * unknown target, `conversation_read_only`, `invalid_request` for a schedule that is not valid, and `quota_exceeded`.
   */
  create(caller: Principal, asked: NewJob): Job {
    const { workspaceId, userId, scopes } = caller;
    const { store } = this.#context;
    const homeId = homeOf(asked.target);
    if (!workspaceExists(store, workspaceId)) throw notFound();
    this.#targets.check(caller, asked.target);
    checkOwnSession(asked);
    const count = store.get(jobCounts, workspaceId) ?? 0;
    refuseOverQuota(JOB_LIMIT, this.#maxJobs(workspaceId), () => count);
    const id = newListedId<JobId>(store, 'job', [{ kind: jobRecords, partition: workspaceId }]);
    const now = timestamp();
    const definition = definitionOf(asked);
    const record: JobRecord = {
      homeId,
      ownerId: userId,
      readsDatasources: scopes.includes('datasource:read'),
      createdAt: now,
      updatedAt: now,
      definition: encoded(definition),
    };
    const timetable = timetableOf({ record, definition });
    const nowMs = Date.parse(now);
    checkTimetable(timetable, nowMs);
    const job = { workspaceId, id };
    const nextMs = instantAfter(timetable, nowMs);
    this.#states.actors.spawn(job, {
      workspaceId,
      jobId: id,
      homeId,
      nextMs,
      isPaused: asked.paused === true,
    });
    store.write((tx) => {
      tx.put(jobRecords, record, workspaceId, id);
      tx.put(jobCounts, count + 1, workspaceId);
      this.#states.place(tx, job);
    });
    return this.#shown(workspaceId, id, { record, definition });
  }

  /** Throws `not_found`. */
  read(caller: Principal, jobId: string): Job {
    return this.#shown(caller.workspaceId, jobId, this.#known(caller, jobId));
  }

  /** Returns a job that the caller may know. Throws `not_found`. */
  #known(caller: Principal, jobId: string): StoredJob {
    const stored = this.#states.read(caller.workspaceId, jobId);
    if (!this.#targets.mayKnow(caller, stored)) throw notFound();
    return stored;
  }

  /** Returns the notebook or conversation in whose home the job lives; undefined for an unknown job. */
  homeOf(workspaceId: WorkspaceId, jobId: string): string | undefined {
    return this.#states.find(workspaceId, jobId)?.record.homeId;
  }

  /** Resolves with a page of jobs, in the order of their creation. Rejects with `invalid_cursor`. */
  async list(caller: Principal, page: PageRequest & JobFilters): Promise<Listing<Job>> {
    const { workspaceId } = caller;
    checkCursor(page.after, (text) => isIdOf('job', text));
    const sizes = new WeakMap<Job, number>();
    return slicedListing(this.#context.store, {
      page,
      workspaceId,
      entriesAfter: (after) =>
        this.#context.store.list(jobRecords, workspaceId, [], pageOf({ ...page, after })),
      itemOf: (record: JobRecord, id) => {
        const stored = { record, definition: definitionIn(record) };
        const { target } = stored.definition;
        const isOfNotebook = 'notebookId' in target && target.notebookId === page.notebookId;
        if (page.notebookId !== undefined && !isOfNotebook) return undefined;
        if (!this.#targets.mayKnow(caller, stored)) return undefined;
        const job = this.#shown(workspaceId, id, stored);
        sizes.set(job, record.definition.byteLength);
        return job;
      },
      // Arguments and prompts may take a megabyte of each job.
      sizeOf: (job) => sizes.get(job) ?? 0,
    });
  }

  /** Returns a page of the occurrences of a job, oldest first unless the order says otherwise. Throws `not_found`, `invalid_cursor`. */
  occurrences(caller: Principal, jobId: string, page: PageRequest): Listing<Occurrence> {
    const { workspaceId } = caller;
    checkCursor(page.after, (text) => isIdOf('occurrence', text));
    this.#known(caller, jobId);
    const { store } = this.#context;
    return listingOf(
      store.list(occurrenceRecords, workspaceId, [jobId], pageOf(page)),
      page.limit,
      occurrenceIn,
    );
  }

  /**
   * Changes the given members. Throws `not_found`, `stale_update`, `role_too_low` unless the caller owns the job or the workspace,
   * and `invalid_request`.
   */
  change(caller: Principal, jobId: string, change: JobChange): Job {
    const { workspaceId } = caller;
    const { store } = this.#context;
    const { expectedUpdatedAt, paused, takeOver, ...members } = change;
    const { record, definition } = this.#known(caller, jobId);
    requireControl(caller, record);
    if (!isSameInstant(record.updatedAt, expectedUpdatedAt)) throw staleUpdate(record.updatedAt);
    if (paused === undefined && takeOver === undefined && Object.keys(members).length === 0)
      throw nothingToChange();
    const changed: StoredJob = {
      record: {
        ...record,
        ...(takeOver === true
          ? { ownerId: caller.userId, readsDatasources: caller.scopes.includes('datasource:read') }
          : {}),
        updatedAt: timestampAfter(record.updatedAt),
      },
      definition: { ...definition, ...members },
    };
    checkOwnSession({ ...members, target: definition.target });
    const job = { workspaceId, id: jobId };
    const timetable = timetableOf(changed);
    const isNewSchedule = members.schedule !== undefined || members.timeZone !== undefined;
    const nowMs = Date.now();
    const afterMs = this.#beginMs(job, nowMs);
    if (isNewSchedule) checkTimetable(timetable, afterMs);
    // The instants that have come belong to the schedule until now. A clock that was set forward may not be noticed yet.
    if (isNewSchedule || paused !== undefined) this.#firing.attend(jobIdOf(workspaceId, jobId), nowMs);
    store.write((tx) =>
      tx.put(jobRecords, { ...changed.record, definition: encoded(changed.definition) }, workspaceId, jobId),
    );
    for (const event of eventsOf(timetable, afterMs, isNewSchedule, paused)) this.#states.tell(job, event);
    return this.read(caller, jobId);
  }

  /**
   * Deletes a job with its occurrences; its runs are kept. Call it in a shared turn. Throws `not_found`, `role_too_low` and
   * `job_running`.
   */
  delete(caller: Principal, jobId: string): void {
    const { store, removals } = this.#context;
    const { workspaceId } = caller;
    const { record } = this.#known(caller, jobId);
    requireControl(caller, record);
    const job = jobIdOf(workspaceId, jobId);
    this.#states.check(job, { type: 'delete' });
    const count = store.get(jobCounts, workspaceId) ?? 1;
    store.write((tx) => {
      this.#states.erase(tx, job, record.homeId);
      tx.put(jobCounts, count - 1, workspaceId);
      this.#onDelete(tx, job);
      removals.add(tx, { kind: JOB, workspaceId, home: record.homeId, id: jobId });
    });
  }

  /** Fires a job now, and returns the occurrence. Throws `not_found`, `role_too_low` and `job_running`. */
  fire(caller: Principal, jobId: string): Occurrence {
    const stored = this.#known(caller, jobId);
    requireControl(caller, stored.record);
    const by = { trigger: 'person', firedBy: caller.userId } as const;
    return this.#firing.fire(jobIdOf(caller.workspaceId, jobId), stored, by);
  }

  /** Fires a job by a hook, with arguments of this firing alone. Throws `not_found` and `job_running`. */
  fireByHook(
    workspaceId: WorkspaceId,
    jobId: string,
    by: Required<Pick<Occurrence, 'hookInId' | 'arguments'>>,
  ): Occurrence {
    const stored = this.#states.read(workspaceId, jobId);
    return this.#firing.fire(jobIdOf(workspaceId, jobId), stored, { trigger: 'hook', ...by });
  }

  /** Returns the record of a job that the caller controls. Throws `not_found` and `role_too_low`. */
  controlled(caller: Principal, jobId: string): JobRecord {
    const { record } = this.#known(caller, jobId);
    requireControl(caller, record);
    return record;
  }

  /** Sets the listener for jobs that are deleted, in the transaction of the deletion. */
  onDelete(listener: (tx: Transaction, job: ActorId) => void): void {
    this.#onDelete = listener;
  }

  /** Returns the next instants of a schedule. Throws `invalid_request`. */
  preview(schedule: NewJob['schedule'], timeZone = 'UTC'): { readonly next: readonly string[] } {
    const nowMs = Date.now();
    const timetable = { schedule, timeZone, anchorMs: nowMs };
    checkTimetable(timetable, nowMs);
    return { next: shownInstants(timetable, nowMs) };
  }

  /**
   * Returns the time after which a job goes on whose schedule has changed, or that is resumed. If the clock was set back, this is the
   * last instant that has an occurrence, so that no instant gets two. A clock that was more than a day ahead was wrong.
   */
  #beginMs(
    { workspaceId, id }: { readonly workspaceId: string; readonly id: string },
    nowMs: number,
  ): number {
    const metMs = this.#states.lastMetMs(workspaceId, id) ?? nowMs;
    return metMs - nowMs > MAX_AHEAD_MS ? nowMs : Math.max(metMs, nowMs);
  }

  #removeSome(workspaceId: string, jobId: string): boolean {
    const { store } = this.#context;
    const ids = [...store.listKeys(occurrenceRecords, workspaceId, [jobId], MAX_REMOVED)];
    if (ids.length > 0)
      store.write((tx) => {
        for (const [, id = ''] of ids) tx.remove(occurrenceRecords, workspaceId, jobId, id);
      });
    return ids.length < MAX_REMOVED;
  }

  /** Returns the last occurrence that is over; null before the first. At most the newest occurrences are still in progress. */
  #lastOccurrence(workspaceId: WorkspaceId, jobId: string): Occurrence | null {
    const newest = pageOf({ order: 'desc' });
    for (const { value } of this.#context.store.list(occurrenceRecords, workspaceId, [jobId], newest)) {
      const occurrence = occurrenceIn(value);
      if (occurrence.finishedAt !== null) return occurrence;
    }
    return null;
  }

  #shown(workspaceId: WorkspaceId, id: string, stored: StoredJob): Job {
    const { record, definition } = stored;
    const snapshot = this.#states.actors.peek({ workspaceId, id })?.snapshot;
    if (snapshot === undefined) throw notFound();
    const { isPaused, reason, failures, occurrence, nextMs } = snapshot.context;
    const { metadata, ...members } = definition;
    const timetable = timetableOf(stored);
    const next = isPaused || nextMs === null ? [] : shownInstants(timetable, nextMs - 1);
    return {
      id,
      ...members,
      ...shownMetadata(metadata),
      paused: isPaused,
      status: jobStatus(snapshot),
      reason,
      failures,
      currentOccurrenceId: occurrence?.id ?? null,
      lastOccurrence: this.#lastOccurrence(workspaceId, id),
      next,
      ownerId: record.ownerId,
      createdAt: record.createdAt,
      updatedAt: record.updatedAt,
    };
  }
}

/** Returns the events of a job whose schedule has changed, or that is paused or resumed. */
function eventsOf(
  timetable: Timetable,
  afterMs: number,
  isNewSchedule: boolean,
  paused: boolean | undefined,
): JobEvent[] {
  const nextMs = instantAfter(timetable, afterMs);
  return [
    ...(isNewSchedule ? [{ type: 'reschedule', nextMs } as const] : []),
    ...(paused === true ? [{ type: 'pause', reason: null } as const] : []),
    ...(paused === false ? [{ type: 'resume', nextMs } as const] : []),
  ];
}

function definitionOf({ target, schedule, paused: _, metadata, ...given }: NewJob): Definition {
  return {
    name: given.name ?? null,
    target,
    schedule,
    timeZone: given.timeZone ?? 'UTC',
    arguments: given.arguments ?? [],
    timeoutS: given.timeoutS ?? null,
    overlap: given.overlap ?? 'skip',
    catchUp: given.catchUp ?? 'last',
    retries: given.retries ?? 2,
    retryOn: given.retryOn ?? 'server',
    outputs: given.outputs ?? [],
    ...shownMetadata(metadata),
  };
}

/** Throws `invalid_request` for members that only a notebook on a session of its own can have. */
function checkOwnSession({ target, ...members }: Pick<NewJob, 'target' | 'arguments' | 'outputs'>): void {
  if (!isConversation(target) && !isOpenSession(target)) return;
  for (const name of ['arguments', 'outputs'] as const)
    if ((members[name]?.length ?? 0) > 0)
      throw new AppError(
        'invalid_request',
        `Only a job that runs a notebook on a session of its own can have ${name}.`,
        { errors: [{ path: `/${name}`, message: 'must be empty for this target' }] },
      );
}

function encoded(definition: Definition): Uint8Array {
  return Buffer.from(JSON.stringify(definition));
}

function shownInstants(timetable: Timetable, afterMs: number): string[] {
  return instantsAfter(timetable, afterMs, SHOWN_INSTANTS).map((ms) => timestamp(ms));
}

/** A job works with the rights of its owner, so that only the owner and owners of the workspace control it. */
function requireControl({ userId, role }: Principal, { ownerId }: JobRecord): void {
  if (userId === ownerId || role === 'owner') return;
  throw new AppError(
    'role_too_low',
    `The job belongs to ${ownerId}. Only this member and owners of the workspace can change, fire or delete it.`,
  );
}

function staleUpdate(updatedAt: string): AppError {
  const detail = `The job was last updated at ${updatedAt}. Read it again first.`;
  return new AppError('stale_update', detail, { members: { updatedAt } });
}

function nothingToChange(): AppError {
  const message = 'name at least one member to change';
  return new AppError('invalid_request', `Nothing is to change: ${message}.`, {
    errors: [{ path: '', message }],
  });
}
