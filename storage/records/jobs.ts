import { defineMark, defineRecord } from '../codec.ts';

/** A job as its owner has defined it. Its state is the snapshot of its actor. */
export interface JobRecord {
  /** The notebook or conversation in whose home the job lives. */
  readonly homeId: string;
  /** The user with whose rights the job works. */
  readonly ownerId: string;
  /** Whether the code of the job may read datasources, as the access token of its owner allowed. */
  readonly readsDatasources: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
  /** JSON of the members that the owner sets. */
  readonly definition: Uint8Array;
}

/** Written in the home of the job; made and deleted in shared turns. Key: workspace id, job id. */
export const jobRecords = defineRecord<JobRecord>('job', 1);

/** How many jobs a workspace has. Written in shared turns. Key: workspace id. */
export const jobCounts = defineRecord<number>('job-count', 1);

/** The place of a job in the index by time, and the number of its occurrences. Its home writes both. Key: workspace id, job id. */
export interface JobBook {
  /** The place of the job in `jobPlaces`; null when it needs no attention. */
  readonly place: string | null;
  /** How many occurrences are stored. */
  readonly occurrences: number;
  /** Absent while the job neither fails nor is paused. */
  readonly condition?: JobCondition;
  /** The last instant that has an occurrence, in milliseconds since 1970; absent until the first one. */
  readonly metMs?: number;
}

/** A job is failing from a failed occurrence until one succeeds, or until it is paused by a person or by itself. */
export const JOB_CONDITIONS = ['failing', 'paused', 'paused_by_itself'] as const;
export type JobCondition = (typeof JOB_CONDITIONS)[number];

export const jobBooks = defineRecord<JobBook>('job-book', 1);

/** Index of the jobs that need attention, by time (`timed-places.ts`). */
export const jobPlaces = defineMark('job-place');

/**
 * Index of the jobs that have a condition, in each slot of homes (`condition-tally.ts`). So a worker that starts counts them without
 * reading the others.
 */
export const jobConditions = defineMark('job-condition');

/** An occurrence of a job, as JSON in the form in which it is served. Key: workspace id, job id, occurrence id. */
export const occurrenceRecords = defineRecord<Uint8Array>('job-occurrence', 1);

/**
 * An attempt whose process may die: it is stored from its beginning until everything that it has made is removed. Key: `SYSTEM`,
 * slot, occurrence id, number of the attempt.
 */
export interface JobAttemptRecord {
  readonly workspaceId: string;
  readonly jobId: string;
  /** The copy of the notebook that the attempt runs; null until it is made. */
  readonly copyId: string | null;
  /** The environment of the copy's session; null until it is open. */
  readonly environmentId: string | null;
}
export const jobAttempts = defineRecord<JobAttemptRecord>('job-attempt', 1);
