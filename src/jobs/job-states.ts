/**
 * The stored state of jobs: their records, their actors, their places by time, and their occurrences. The home of a job writes the
 * job's whole state. All writes of one turn are one commit.
 */

import { attentionMs, type JobContext, type JobEvent, type JobReason, jobMachine } from '#machines/job.ts';
import { notFound } from '#src/base/errors/errors.ts';
import { isIdOf, type JobId, type OccurrenceId, type WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { NewJob, Occurrence } from '#src/contract/wire/job.ts';
import type { ActorKind } from '#src/runtime/actors/actor-kind.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { ConditionTally, unlinkCondition } from '#src/runtime/homes/condition-tally.ts';
import type { MovedPlace } from '#src/runtime/homes/place-clock.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { type StoreKey, SYSTEM } from '#storage/keys.ts';
import { newIdAfter } from '#storage/lists/listed-ids.ts';
import { slotText, timedPlaceOf } from '#storage/lists/timed-places.ts';
import {
  JOB_CONDITIONS,
  type JobBook,
  type JobCondition,
  type JobRecord,
  jobBooks,
  jobConditions,
  jobPlaces,
  jobRecords,
  occurrenceRecords,
} from '#storage/records/jobs.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Timetable } from './schedule.ts';

/** The members of a job that its owner sets. */
export type Definition = Required<Omit<NewJob, 'paused' | 'metadata'>> & Pick<NewJob, 'metadata'>;

/** A stored job. */
export interface StoredJob {
  readonly record: JobRecord;
  readonly definition: Definition;
}

/**
 * Called in the turn whose commit stores the end of an occurrence, or that an instant was skipped. `tx` is the transaction of that
 * commit. A listener must not change the job.
 */
export type OccurrenceListener = (tx: Transaction, job: ActorId, occurrence: Occurrence) => void;
/** Called in the turn in which a job is paused. `reason` is null when a person has paused the job. See `OccurrenceListener`. */
export type PauseListener = (tx: Transaction, job: ActorId, reason: JobReason | null) => void;

/** The most occurrences that a job keeps. A new one replaces the oldest. */
const MAX_OCCURRENCES = 1000;

/** Why an instant during an occurrence is skipped. */
export const OVERLAP: JobReason = {
  code: 'overlap',
  message: 'The occurrence before this one was still in progress.',
};
const PAUSED: JobReason = { code: 'paused', message: 'The job was paused before this occurrence began.' };

const NEW_BOOK: JobBook = { place: null, occurrences: 0 };
/** How an occurrence that has begun can end. */
const ENDS = ['completed', 'failed', 'cancelled'] as const;

export class JobStates {
  readonly actors: ActorKind<typeof jobMachine>;
  /** The jobs of this worker that are failing or paused. */
  readonly tally: ConditionTally<JobCondition>;
  readonly #context: Pick<PlaneContext, 'store' | 'metrics'>;
  readonly #occurrenceListeners: OccurrenceListener[] = [];
  readonly #pauseListeners: PauseListener[] = [];
  #onPlace: (moved: MovedPlace) => void = () => undefined;

  constructor(context: Pick<PlaneContext, 'store' | 'runtime' | 'metrics' | 'cluster'>) {
    this.#context = context;
    const { store, cluster } = context;
    this.tally = new ConditionTally({
      store,
      cluster,
      index: jobConditions,
      conditions: JOB_CONDITIONS,
      factsOf(workspaceId, jobId) {
        const id = store.get(jobRecords, workspaceId, jobId)?.homeId;
        const condition = store.get(jobBooks, workspaceId, jobId)?.condition;
        return id === undefined ? undefined : { home: { workspaceId, id }, condition };
      },
    });
    // The first failure must change a series that is there, or Prometheus does not see an increase.
    for (const status of ENDS) context.metrics.jobEnds.of(status);
    this.actors = context.runtime.define({
      kind: 'job',
      machine: jobMachine,
      machineVersion: 1,
      hasNewIds: true,
      homeOf: ({ homeId }) => homeId,
      shown: ({ homeId, occurrence, nextMs, failures, isPaused, reason }) => ({
        links: [{ kind: isIdOf('conversation', homeId) ? 'agent-session' : 'notebook-session', id: homeId }],
        context: {
          nextMs,
          isPaused,
          failures,
          reason: reason?.code ?? null,
          attempt: occurrence?.attempt ?? null,
        },
      }),
    });
  }

  /** Sets the listener for places. */
  onPlace(listener: (moved: MovedPlace) => void): void {
    this.#onPlace = listener;
  }

  /** Adds a listener for occurrences that have ended or were skipped. */
  onOccurrence(listener: OccurrenceListener): void {
    this.#occurrenceListeners.push(listener);
  }

  /** Adds a listener for jobs that are paused, by themselves or by a person. */
  onPaused(listener: PauseListener): void {
    this.#pauseListeners.push(listener);
  }

  /** Returns a job; undefined when there is none. */
  find(workspaceId: string, jobId: string): StoredJob | undefined {
    const record = this.#context.store.get(jobRecords, workspaceId, jobId);
    return record && { record, definition: definitionIn(record) };
  }

  /** Returns a job. Throws `not_found`. */
  read(workspaceId: string, jobId: string): StoredJob {
    const job = this.find(workspaceId, jobId);
    if (job === undefined) throw notFound();
    return job;
  }

  /** Throws the refusal of the job's state. */
  check(job: ActorId, event: JobEvent): void {
    this.actors.check(job, event);
  }

  /** Reports an event to the job and moves its place. Returns whether its state has taken the event. */
  tell(job: ActorId, event: JobEvent): boolean {
    const before = this.#contextOf(job);
    const isTaken = this.actors.tell(job, event);
    if (isTaken) this.#context.store.write((tx) => this.#followMove(tx, job, before));
    return isTaken;
  }

  /** Writes what follows from a move of a job: its place, and the end of occurrences that it has dropped from its queue. */
  #followMove(tx: Transaction, job: ActorId, before: JobContext | undefined): void {
    this.place(tx, job);
    const now = this.#contextOf(job);
    if (before === undefined || now === undefined) return;
    const kept = new Set([now.occurrence?.id, ...now.queue.map(({ id }) => id)]);
    const reason = now.isPaused ? (now.reason ?? PAUSED) : OVERLAP;
    for (const { id } of before.queue) if (!kept.has(id)) this.#drop(tx, job, id, reason);
    if (now.isPaused && !before.isPaused)
      for (const listener of this.#pauseListeners) listener(tx, job, now.reason);
  }

  /** Skips a queued occurrence, unless the caller has ended it. */
  #drop(tx: Transaction, { workspaceId, id }: ActorId, occurrenceId: OccurrenceId, reason: JobReason): void {
    const bytes = tx.get(occurrenceRecords, workspaceId, id, occurrenceId);
    if (bytes !== undefined && occurrenceIn(bytes).finishedAt === null)
      this.changeOccurrence({ workspaceId, id }, occurrenceId, skippedNow(reason));
  }

  /** Puts the job into the indexes by time and by condition, where its state belongs. */
  place(tx: Transaction, { workspaceId, id }: ActorId): void {
    const context = this.#contextOf({ workspaceId, id });
    const ms = context === undefined ? null : attentionMs(context);
    const book = tx.get(jobBooks, workspaceId, id) ?? NEW_BOOK;
    const place = ms === null ? null : timedPlaceOf(ms, workspaceId, id);
    if (context === undefined) return;
    const condition = conditionOf(context);
    if (place === book.place && condition === book.condition) return;
    const slot = slotOf(workspaceId, context.homeId);
    const { condition: _, ...rest } = book;
    tx.put(jobBooks, { ...rest, place, ...(condition && { condition }) }, workspaceId, id);
    if (condition !== book.condition)
      this.tally.move(tx, { workspaceId, id }, { workspaceId, id: context.homeId }, condition);
    if (place === book.place) return;
    if (book.place !== null) tx.remove(jobPlaces, SYSTEM, slotText(slot), book.place);
    if (place !== null) tx.mark(jobPlaces, SYSTEM, slotText(slot), place);
    this.#onPlace({ slot, ms, left: book.place });
  }

  /** Returns the present place of a job in the index; null when it has none. */
  placeOf(workspaceId: string, jobId: string): string | null {
    return this.#context.store.get(jobBooks, workspaceId, jobId)?.place ?? null;
  }

  /** Returns an id for a new occurrence. It sorts after all others of the job, also when the clock was set back. */
  newOccurrenceId({ workspaceId, id }: ActorId): OccurrenceId {
    const list = { kind: occurrenceRecords, partition: workspaceId, prefix: [id] };
    return newIdAfter<OccurrenceId>(this.#context.store, 'occurrence', [list]);
  }

  /** Returns the last instant of a job that has an occurrence, in milliseconds since 1970; undefined when there is none. */
  lastMetMs(workspaceId: string, jobId: string): number | undefined {
    return this.#context.store.get(jobBooks, workspaceId, jobId)?.metMs;
  }

  /** Stores new occurrences, oldest first, and removes the oldest ones beyond the limit. */
  addOccurrences(tx: Transaction, { workspaceId, id }: ActorId, added: readonly Occurrence[]): void {
    const { store } = this.#context;
    const book = tx.get(jobBooks, workspaceId, id) ?? NEW_BOOK;
    for (const occurrence of added) {
      this.#put(tx, workspaceId, occurrence);
      this.#count(undefined, occurrence);
      if (occurrence.finishedAt !== null) this.#announce(tx, { workspaceId, id }, occurrence);
    }
    const occurrences = book.occurrences + added.length;
    const excess = Math.max(0, occurrences - MAX_OCCURRENCES);
    const oldest = excess === 0 ? [] : [...store.listKeys(occurrenceRecords, workspaceId, [id], excess)];
    for (const [, oldId = ''] of oldest) tx.remove(occurrenceRecords, workspaceId, id, oldId);
    const met = added.findLast(({ trigger }) => trigger === 'schedule');
    const kept = {
      ...book,
      occurrences: occurrences - oldest.length,
      ...(met && { metMs: Date.parse(met.lastDueAt ?? met.dueAt) }),
    };
    tx.put(jobBooks, kept, workspaceId, id);
  }

  /** Returns a stored occurrence; undefined when it is no longer stored. */
  occurrence({ workspaceId, id }: ActorId, occurrenceId: OccurrenceId): Occurrence | undefined {
    const bytes = this.#context.store.get(occurrenceRecords, workspaceId, id, occurrenceId);
    return bytes && occurrenceIn(bytes);
  }

  /** Returns the arguments of an occurrence alone, in addition to those of its job. */
  argumentsOf(job: ActorId, occurrenceId: OccurrenceId): readonly string[] {
    return this.occurrence(job, occurrenceId)?.arguments ?? [];
  }

  /** Changes members of an occurrence. Does nothing when it is no longer stored. */
  changeOccurrence(
    { workspaceId, id }: ActorId,
    occurrenceId: OccurrenceId,
    change: Partial<Occurrence>,
  ): void {
    this.#context.store.write((tx) => {
      const bytes = tx.get(occurrenceRecords, workspaceId, id, occurrenceId);
      if (bytes === undefined) return;
      const before = occurrenceIn(bytes);
      const occurrence = { ...before, ...change };
      this.#put(tx, workspaceId, occurrence);
      this.#count(before, occurrence);
      if (before.finishedAt === null && occurrence.finishedAt !== null)
        this.#announce(tx, { workspaceId, id }, occurrence);
    });
  }

  #announce(tx: Transaction, job: ActorId, occurrence: Occurrence): void {
    for (const listener of this.#occurrenceListeners) listener(tx, job, occurrence);
  }

  #contextOf(job: ActorId): JobContext | undefined {
    return this.actors.peek(job)?.snapshot.context;
  }

  /** Counts the beginning and the end of an occurrence for the metrics. `before` is undefined for a new one. */
  #count(before: Occurrence | undefined, { status, reason, trigger, dueAt, finishedAt }: Occurrence): void {
    const { jobSkips, jobFirings, jobLateness, jobEnds } = this.#context.metrics;
    if (finishedAt !== null) {
      if (before?.finishedAt != null) return;
      if (status === 'skipped') jobSkips.of(reason?.code ?? 'unknown').add();
      else jobEnds.of(status).add();
      return;
    }
    const isBeginning = status === 'due' && (before === undefined || before.status === 'queued');
    if (!isBeginning) return;
    jobFirings.of(trigger).add();
    // The clock may have been set back since the instant came.
    if (trigger === 'schedule') jobLateness.of().observe(Math.max(0, Date.now() - Date.parse(dueAt)) / 1000);
  }

  #put(tx: Transaction, workspaceId: string, occurrence: Occurrence): void {
    const bytes = Buffer.from(JSON.stringify(occurrence));
    tx.put(occurrenceRecords, bytes, workspaceId, occurrence.jobId, occurrence.id);
  }

  /** Removes a job without an occurrence in progress. Its occurrences are removed in later steps. */
  erase(tx: Transaction, job: ActorId, homeId: string): void {
    const { workspaceId, id } = job;
    const book = tx.get(jobBooks, workspaceId, id);
    const slot = slotOf(workspaceId, homeId);
    if (book?.place != null) {
      tx.remove(jobPlaces, SYSTEM, slotText(slot), book.place);
      this.#onPlace({ slot, ms: null, left: book.place });
    }
    this.tally.move(tx, job, { workspaceId, id: homeId }, undefined);
    tx.remove(jobBooks, workspaceId, id);
    tx.remove(jobRecords, workspaceId, id);
    this.actors.erase(tx, job);
  }
}

/** Returns the condition of a job; undefined for a job that fires and succeeds. */
function conditionOf({ isPaused, reason, failures }: JobContext): JobCondition | undefined {
  if (isPaused) return reason === null ? 'paused' : 'paused_by_itself';
  return failures > 0 ? 'failing' : undefined;
}

/** Returns the members that the owner of a job has set. */
export function definitionIn({ definition }: JobRecord): Definition {
  const parsed: Definition = JSON.parse(Buffer.from(definition).toString('utf8'));
  return parsed;
}

/** Returns the members of an occurrence that is skipped now. */
export function skippedNow(reason: JobReason): Pick<Occurrence, 'status' | 'reason' | 'finishedAt'> {
  return { status: 'skipped', reason, finishedAt: timestamp() };
}

/** Returns a stored occurrence. */
export function occurrenceIn(bytes: Uint8Array): Occurrence {
  const parsed: Occurrence = JSON.parse(Buffer.from(bytes).toString('utf8'));
  return parsed;
}

/** Returns the facts on which the instants of a job depend. Intervals are counted from the creation of the job. */
export function timetableOf({ record, definition }: StoredJob): Timetable {
  const { schedule, timeZone } = definition;
  return { schedule, timeZone, anchorMs: Date.parse(record.createdAt) };
}

/**
 * Removes the entries of a job from the indexes by time and by condition, if the record with this key is a job. The record is about
 * to be removed with its workspace. If it is damaged, the clock removes its place once it is due.
 */
export function unlinkJob(tx: Transaction, [workspaceId, name, id = '']: StoreKey): void {
  if (name !== jobRecords.name) return;
  const homeId = unlessDamaged(() => tx.get(jobRecords, workspaceId, id))?.homeId;
  const book = unlessDamaged(() => tx.get(jobBooks, workspaceId, id));
  if (homeId === undefined || book === undefined) return;
  if (book.place !== null) tx.remove(jobPlaces, SYSTEM, slotText(slotOf(workspaceId, homeId)), book.place);
  if (book.condition !== undefined)
    unlinkCondition(tx, jobConditions, { workspaceId, id }, { workspaceId, id: homeId });
}

/** Names a job among all actors of its kind. */
export function jobIdOf(workspaceId: string, jobId: string): ActorId & { readonly id: JobId } {
  return { workspaceId: workspaceId as WorkspaceId, id: jobId as JobId };
}
