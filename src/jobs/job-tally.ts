/**
 * Counts the jobs of one worker that are failing or paused, for the metrics. A change of a job moves the numbers, so reading them
 * reads nothing from the store. Only the worker that is the home of a job counts it.
 */
import type { ActorId } from '#src/runtime/actors/address.ts';
import { SLOTS, slotOf } from '#src/runtime/homes/slots.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { slotText } from '#storage/lists/timed-places.ts';
import {
  type JobCondition,
  jobBooks,
  jobConditions,
  jobIn,
  jobRecords,
  jobText,
} from '#storage/records/jobs.ts';

/** A job with a condition. */
interface Counted {
  readonly slot: number;
  readonly condition: JobCondition;
}

/** The jobs with a condition in one slot. */
interface SlotCounts extends Record<JobCondition, number> {
  /** A home in the slot, by which the worker of the slot is found. */
  readonly home: readonly [workspaceId: string, homeId: string];
}

interface TallyContext {
  readonly store: PlaneContext['store'];
  readonly cluster: Pick<PlaneContext['cluster'], 'owns'>;
}

export class JobTally {
  readonly #context: TallyContext;
  /** By the text of the job in the index. */
  readonly #jobs = new Map<string, Counted>();
  readonly #slots = new Map<number, SlotCounts>();

  constructor(context: TallyContext) {
    this.#context = context;
  }

  /** Notes the present condition of a job; undefined when it has none, or is gone. */
  note({ workspaceId, id }: ActorId, homeId: string, condition: JobCondition | undefined): void {
    const job = jobText(workspaceId, id);
    this.#drop(job);
    if (condition === undefined) return;
    const slot = slotOf(workspaceId, homeId);
    const home = [workspaceId, homeId] as const;
    const counts = this.#slots.get(slot) ?? { home, failing: 0, paused: 0, paused_by_itself: 0 };
    counts[condition]++;
    this.#slots.set(slot, counts);
    this.#jobs.set(job, { slot, condition });
  }

  #drop(job: string): void {
    const counted = this.#jobs.get(job);
    if (counted === undefined) return;
    this.#jobs.delete(job);
    const counts = this.#slots.get(counted.slot);
    if (counts !== undefined) counts[counted.condition]--;
  }

  /** Frees the memory of a deleted workspace. */
  forget(workspaceId: string): void {
    const own = jobText(workspaceId, '');
    for (const job of [...this.#jobs.keys()]) if (job.startsWith(own)) this.#drop(job);
  }

  /**
   * Reads the conditions of the jobs of this worker from the index. Call it when slots have come to this worker. Entries of jobs
   * that are gone, because their workspace was deleted, are removed.
   */
  load(): void {
    const { store } = this.#context;
    const known = [...this.#jobs.keys()];
    this.#jobs.clear();
    this.#slots.clear();
    for (let slot = 0; slot < SLOTS; slot++)
      for (const { id: job } of [
        ...store.list(jobConditions, SYSTEM, [slotText(slot)], { limit: Number.POSITIVE_INFINITY }),
      ])
        if (!this.#read(job)) store.write((tx) => tx.remove(jobConditions, SYSTEM, slotText(slot), job));
    // The index shows committed entries. The condition of a job that has changed in this turn is in its book alone.
    for (const job of known) if (!this.#jobs.has(job)) this.#read(job);
  }

  /** Notes the stored condition of a job whose home is here. Returns false when the job is gone. */
  #read(job: string): boolean {
    const { store, cluster } = this.#context;
    const { workspaceId, jobId } = jobIn(job);
    const homeId = store.get(jobRecords, workspaceId, jobId)?.homeId;
    if (homeId === undefined) return false;
    if (cluster.owns(workspaceId, homeId))
      this.note(
        { workspaceId, id: jobId } as ActorId,
        homeId,
        store.get(jobBooks, workspaceId, jobId)?.condition,
      );
    return true;
  }

  /** Returns how many jobs of this worker have each condition. */
  counts(): Record<JobCondition, number> {
    const sum = { failing: 0, paused: 0, paused_by_itself: 0 };
    for (const { home, failing, paused, paused_by_itself } of this.#slots.values()) {
      if (!this.#context.cluster.owns(...home)) continue; // the slot has gone to another worker
      sum.failing += failing;
      sum.paused += paused;
      sum.paused_by_itself += paused_by_itself;
    }
    return sum;
  }
}
