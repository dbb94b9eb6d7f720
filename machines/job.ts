/**
 * One job: its next instant, the occurrence in progress, the occurrences that wait for it, and the reason why the job is paused.
 *
 *   waiting ─due, fire─► active.due ─begun─► active.running ─over─► waiting | paused | ended
 *                          ▲ ▲  └──────over──────┘  │ │  └─over─► active.backing-off ─retry─► active.due
 *                          │ └──over, a queued one──┘ └─supersede─► active.cancelling ─over─► active.due
 *                          └──supersede── active.due, active.backing-off
 *   waiting ─pause─► paused ─resume─► waiting      waiting ─skip, reschedule without a next instant─► ended
 *
 * Its rules, each with the test that holds it:
 *
 * J1 A job has an occurrence exactly while it is active, and at most one.
 *    — "a job has an occurrence exactly while it is active"
 * J2 While it is active, an instant only moves the next one: the caller records the skipped occurrence.
 *    — "an instant that comes during an occurrence moves only the next instant"
 * J3 Five failures in a row pause the job, and a success begins the count anew.
 *    — "five failures in a row pause a job, and a success between them does not"
 * J4 A job that is paused during an occurrence finishes the occurrence first.
 *    — "a job that is paused during an occurrence is paused after it"
 * J5 Only a job without an occurrence can be fired by a person or deleted.
 *    — "a job in active.running takes, refuses or ignores every event as its row says"
 * J6 A queued occurrence begins in the transition that ends the one before it, in the order of the queue.
 *    — "each queued occurrence begins with the end of the one before it"
 * J7 A job that is paused has no queued occurrences.
 *    — "a job that is paused drops its queue, whether a person or its failures pause it"
 * J8 An occurrence that is superseded while its run is in progress ends before the next one begins, and is not repeated.
 *    — "a run that is superseded ends before the next occurrence begins, and is not repeated"
 *
 * Stored: all of it. An attempt belongs to its process. After a restart the owner of the job reports how the attempt ended.
 */
import { assign, type SnapshotFrom, setup } from 'xstate';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { JobId, OccurrenceId, RunId, WorkspaceId } from '#src/base/ids.ts';

/** How many failures in a row pause a job. */
export const MAX_FAILURES = 5;

/** Why a job is paused, or why an occurrence did not succeed. */
export interface JobReason {
  readonly code: string;
  readonly message: string;
}

/** The occurrence in progress. Times are milliseconds since 1970. */
export interface CurrentOccurrence {
  readonly id: OccurrenceId;
  readonly dueMs: number;
  /** 1 for the first attempt. */
  readonly attempt: number;
  /** Null until the run of the present attempt has begun. */
  readonly runId: RunId | null;
  /** When the next attempt begins; null unless the job is backing off. */
  readonly retryAtMs: number | null;
}

/** An occurrence that begins after the one in progress. */
export type QueuedOccurrence = Pick<CurrentOccurrence, 'id' | 'dueMs'>;

export interface JobInput {
  readonly workspaceId: WorkspaceId;
  readonly jobId: JobId;
  /** The notebook or conversation in whose home the job lives. */
  readonly homeId: string;
  /** The first instant; null when the schedule has none. */
  readonly nextMs: number | null;
  readonly isPaused: boolean;
}

export interface JobContext extends JobInput {
  readonly occurrence: CurrentOccurrence | null;
  /** The occurrences that wait, in the order in which they begin. The caller bounds them. */
  readonly queue: readonly QueuedOccurrence[];
  /** How many occurrences in a row have failed. */
  readonly failures: number;
  /** Why the job has paused itself; null when a person has paused it, or it is not paused. */
  readonly reason: JobReason | null;
}

export type JobEvent =
  /** The next instant has come. `nextMs` is the instant after it. */
  | { type: 'due'; occurrenceId: OccurrenceId; dueMs: number; nextMs: number | null }
  /** A person fires the job now. */
  | { type: 'fire'; occurrenceId: OccurrenceId; dueMs: number }
  /** Instants have passed without an occurrence of their own in progress. */
  | { type: 'skip'; nextMs: number | null }
  /** Replaces the queue, because instants have come that wait for the occurrence in progress. */
  | { type: 'queue'; queue: readonly QueuedOccurrence[]; nextMs: number | null }
  /** An instant has come that replaces the occurrence in progress. The caller cancels its run, if it has one. */
  | { type: 'supersede'; occurrenceId: OccurrenceId; dueMs: number; nextMs: number | null }
  /** The occurrence in progress is skipped, because its target cannot take a run. */
  | { type: 'withdraw' }
  | { type: 'begun'; runId: RunId }
  /** The attempt is over. `failure` is null after a success. `retryAtMs` is null when the attempt is not repeated. */
  | { type: 'over'; failure: JobReason | null; retryAtMs: number | null }
  | { type: 'retry' }
  /** `reason` is null when a person pauses the job. */
  | { type: 'pause'; reason: JobReason | null }
  | { type: 'resume'; nextMs: number | null }
  | { type: 'reschedule'; nextMs: number | null }
  /** Asks whether the job may be deleted; changes nothing. */
  | { type: 'delete' };

type Over = Extract<JobEvent, { type: 'over' }>;
type Supersede = Extract<JobEvent, { type: 'supersede' }>;

const SET_NEXT = {
  type: 'setNext',
  params: ({ event }: { readonly event: { readonly nextMs: number | null } }) => event.nextMs,
} as const;

/** Begins another occurrence in place of one that has no run. */
const REPLACE = [
  SET_NEXT,
  { type: 'begin', params: ({ event }: { readonly event: Supersede }) => event },
] as const;

/** Keeps an occurrence until the run of the one in progress has ended. */
const REPLACE_LATER = [
  SET_NEXT,
  { type: 'queueOnly', params: ({ event }: { readonly event: Supersede }) => event },
] as const;

export const jobMachine = setup({
  types: {} as {
    input: JobInput;
    context: JobContext;
    events: JobEvent;
    meta: Refusals<JobEvent['type']>;
    tags: 'resident';
  },
  guards: {
    isActive: ({ context }) => context.occurrence !== null,
    isPaused: ({ context }) => context.isPaused,
    hasNoNext: ({ context }) => context.nextMs === null,
    isRepeated: (_, { retryAtMs }: Over) => retryAtMs !== null,
  },
  actions: {
    permit: () => undefined,
    setNext: assign((_, nextMs: number | null) => ({ nextMs })),
    begin: assign((_, { occurrenceId, dueMs }: { occurrenceId: OccurrenceId; dueMs: number }) => ({
      occurrence: newOccurrence({ id: occurrenceId, dueMs }),
      queue: [],
    })),
    setQueue: assign((_, queue: readonly QueuedOccurrence[]) => ({ queue })),
    queueOnly: assign((_, { occurrenceId, dueMs }: Supersede) => ({ queue: [{ id: occurrenceId, dueMs }] })),
    beginQueued: assign(({ context }) => withNext(context)),
    noteRun: assign(({ context }, runId: RunId) => ({ occurrence: { ...current(context), runId } })),
    noteRetry: assign(({ context }, { retryAtMs }: Over) => ({
      occurrence: { ...current(context), runId: null, retryAtMs },
    })),
    beginAgain: assign(({ context }) => {
      const occurrence = current(context);
      return { occurrence: { ...occurrence, attempt: occurrence.attempt + 1, retryAtMs: null } };
    }),
    conclude: assign(({ context }, { failure }: Over) => {
      const failures = failure === null ? 0 : context.failures + 1;
      if (failure === null || failures < MAX_FAILURES || context.isPaused)
        return { ...withNext(context), failures };
      return { occurrence: null, queue: [], failures, isPaused: true, reason: pausedBy(failure) };
    }),
    notePause: assign((_, reason: JobReason | null) => ({ isPaused: true, reason, queue: [] })),
    noteResumption: assign((_, nextMs: number | null) => ({
      isPaused: false,
      reason: null,
      failures: 0,
      nextMs,
    })),
  },
}).createMachine({
  id: 'job',
  context: ({ input }) => ({ ...input, occurrence: null, queue: [], failures: 0, reason: null }),
  initial: 'settling',
  on: { delete: { actions: 'permit' } },
  states: {
    /** Left at once. */
    settling: {
      always: [
        { guard: 'isActive', target: 'active' },
        { guard: 'isPaused', target: 'paused' },
        { guard: 'hasNoNext', target: 'ended' },
        { target: 'waiting' },
      ],
    },
    waiting: {
      on: {
        due: {
          target: 'active',
          actions: [SET_NEXT, { type: 'begin', params: ({ event }) => event }],
        },
        fire: { target: 'active', actions: { type: 'begin', params: ({ event }) => event } },
        skip: { target: 'settling', actions: SET_NEXT },
        reschedule: {
          target: 'settling',
          actions: SET_NEXT,
        },
        pause: { target: 'paused', actions: { type: 'notePause', params: ({ event }) => event.reason } },
      },
    },
    active: {
      meta: { refuse: { fire: 'job_running', delete: 'job_running' } },
      initial: 'due',
      on: {
        delete: {},
        skip: { actions: SET_NEXT },
        reschedule: { actions: SET_NEXT },
        queue: {
          actions: [SET_NEXT, { type: 'setQueue', params: ({ event }) => event.queue }],
        },
        pause: { actions: { type: 'notePause', params: ({ event }) => event.reason } },
        resume: {
          guard: 'isPaused',
          actions: { type: 'noteResumption', params: ({ event }) => event.nextMs },
        },
        over: [
          {
            guard: { type: 'isRepeated', params: ({ event }) => event },
            target: '.backing-off',
            actions: { type: 'noteRetry', params: ({ event }) => event },
          },
          { target: 'settling', actions: { type: 'conclude', params: ({ event }) => event } },
        ],
      },
      states: {
        due: {
          tags: 'resident',
          on: {
            begun: { target: 'running', actions: { type: 'noteRun', params: ({ event }) => event.runId } },
            supersede: { target: 'due', actions: REPLACE },
            withdraw: { target: '#job.settling', actions: 'beginQueued' },
          },
        },
        running: {
          tags: 'resident',
          on: { supersede: { target: 'cancelling', actions: REPLACE_LATER } },
        },
        /** The run is being cancelled, because the next instant has come. */
        cancelling: {
          tags: 'resident',
          on: {
            supersede: { actions: REPLACE_LATER },
            over: { target: '#job.settling', actions: { type: 'conclude', params: ({ event }) => event } },
          },
        },
        'backing-off': {
          on: {
            retry: { target: 'due', actions: 'beginAgain' },
            supersede: { target: 'due', actions: REPLACE },
          },
        },
      },
    },
    paused: {
      on: {
        fire: { target: 'active', actions: { type: 'begin', params: ({ event }) => event } },
        resume: {
          target: 'settling',
          actions: { type: 'noteResumption', params: ({ event }) => event.nextMs },
        },
        reschedule: { actions: SET_NEXT },
      },
    },
    ended: {
      on: {
        fire: { target: 'active', actions: { type: 'begin', params: ({ event }) => event } },
        reschedule: {
          target: 'settling',
          actions: SET_NEXT,
        },
        pause: { target: 'paused', actions: { type: 'notePause', params: ({ event }) => event.reason } },
      },
    },
  },
});

/** The states of a job as the API names them. */
export type JobStatus = 'waiting' | 'due' | 'running' | 'cancelling' | 'backing-off' | 'paused' | 'ended';

/** Returns the status that the API shows. */
export function jobStatus(snapshot: Pick<SnapshotFrom<typeof jobMachine>, 'matches'>): JobStatus {
  for (const status of ['waiting', 'paused', 'ended'] as const) if (snapshot.matches(status)) return status;
  for (const status of ['due', 'running', 'cancelling', 'backing-off'] as const)
    if (snapshot.matches({ active: status })) return status;
  invariant(false, 'Each state of a job has a status.');
}

/**
 * Returns when the job needs attention next, in milliseconds since 1970: at its next attempt, or at its next instant. Null
 * when nothing will happen by itself.
 */
export function attentionMs({ occurrence, nextMs, isPaused }: JobContext): number | null {
  const next = isPaused ? null : nextMs;
  const retry = occurrence?.retryAtMs ?? null;
  return next === null || (retry !== null && retry < next) ? retry : next;
}

function current({ occurrence, jobId }: JobContext): CurrentOccurrence {
  invariant(occurrence !== null, 'An active job has an occurrence.', jobId);
  return occurrence;
}

function newOccurrence({ id, dueMs }: QueuedOccurrence): CurrentOccurrence {
  return { id, dueMs, attempt: 1, runId: null, retryAtMs: null };
}

/** Returns the occurrence that begins after the one in progress, and the rest of the queue. */
function withNext({ queue }: JobContext): Pick<JobContext, 'occurrence' | 'queue'> {
  const [first, ...rest] = queue;
  return { occurrence: first === undefined ? null : newOccurrence(first), queue: rest };
}

function pausedBy({ message }: JobReason): JobReason {
  return {
    code: 'failures',
    message: `${MAX_FAILURES} occurrences in a row have failed. The last failure: ${message}`,
  };
}
