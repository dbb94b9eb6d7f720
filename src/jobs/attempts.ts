/**
 * The attempts of occurrences: each runs a copy of the job's notebook in a session of its own, and removes the copy afterwards. An
 * attempt is stored from its beginning until its copy is removed, so that the next process ends what a dead process has begun.
 */

import type { JobReason } from '#machines/job.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { OccurrenceId, UserId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { TerminalStatus } from '#src/contract/wire/run.ts';
import type { Executions } from '#src/notebook/requests/executions.ts';
import type { NewCopy, NotebookCopies } from '#src/notebook/requests/notebook-copies.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { type JobAttemptRecord, jobAttempts, slotText } from '#storage/records/jobs.ts';
import type { Transaction } from '#storage/transaction.ts';
import { type JobStates, jobIdOf, type StoredJob } from './job-states.ts';

/** The parts of other rooms that attempts use. */
export interface AttemptParts {
  readonly copies: NotebookCopies;
  readonly executions: Executions;
  /** Returns whether the server is ending, so that no attempt begins. */
  readonly isEnding: () => boolean;
}

/** One attempt of an occurrence. */
interface Attempt {
  readonly job: ActorId;
  readonly stored: StoredJob;
  readonly occurrenceId: OccurrenceId;
  readonly number: number;
  readonly slot: string;
}

/** The copy and the environment of an attempt. Each is null until the attempt has made it. */
interface Made {
  copyId: string | null;
  environmentId: string | null;
}

/** How an attempt ended. */
interface End {
  readonly status: TerminalStatus;
  readonly failure: JobReason | null;
}

const FIRST_PAUSE_MS = 30_000;
/** Ends that are not the fault of the notebook, after which an occurrence is attempted again. */
const RETRYABLE: ReadonlySet<string> = new Set([
  'kernel_host_lost',
  'kernel_exited',
  'kernel_killed',
  'server_stopped',
  'at_capacity',
  'quota_exceeded',
]);

const LOST: JobReason = {
  code: 'server_stopped',
  message: 'The server ended while the occurrence was in progress.',
};
const BROKEN: JobReason = {
  code: 'internal',
  message: 'The occurrence failed because of a fault of the server.',
};

export class Attempts {
  readonly #context: RunPlaneContext;
  readonly #states: JobStates;
  readonly #parts: AttemptParts;
  /** The attempts of this process by their keys. */
  readonly #own = new Set<string>();
  readonly #byRun = new Map<string, Attempt>();

  constructor(context: RunPlaneContext, states: JobStates, parts: AttemptParts) {
    this.#context = context;
    this.#states = states;
    this.#parts = parts;
    // In the turn in which the run ends, so that its end and that of the occurrence are one commit.
    context.runs.actors.on(({ id }, { status, error }) => {
      const attempt = this.#byRun.get(id);
      if (attempt === undefined || status === 'running') return;
      this.#byRun.delete(id);
      const failure = status === 'failed' ? (error ?? BROKEN) : null;
      unawaited(this.#end(attempt, { status, failure }), 'attempts: the end of an attempt of a job');
    });
  }

  /** Begins the present attempt of a job that is due. It is stored in the commit of this turn. */
  begin(job: ActorId, stored: StoredJob): void {
    const occurrence = this.#states.actors.peek(job)?.snapshot.context.occurrence;
    if (occurrence == null) return;
    const slot = slotText(slotOf(job.workspaceId, stored.record.homeId));
    const attempt = { job, stored, occurrenceId: occurrence.id, number: occurrence.attempt, slot };
    this.#own.add(keyOf(attempt));
    this.#context.store.write((tx) => this.#put(tx, attempt, { copyId: null, environmentId: null }));
    if (attempt.number > 1)
      this.#states.changeOccurrence(job, attempt.occurrenceId, { status: 'due', attempts: attempt.number });
    faultPoint('job.fired');
    unawaited(this.#carryOut(attempt), 'attempts: an attempt of a job');
  }

  /** Ends the attempts of dead processes whose jobs have their home here, and removes their copies. */
  recover(): void {
    const { store } = this.#context;
    if (store.isReadOnly) return;
    store.refreshShared();
    for (const { ids, value } of [...store.listAfter(jobAttempts, SYSTEM, [], [])]) {
      const [slot = '', occurrenceId = '', number = ''] = ids;
      if (value !== undefined)
        this.#recover({ slot, occurrenceId: occurrenceId as OccurrenceId, number: Number(number) }, value);
    }
  }

  #recover(place: Pick<Attempt, 'slot' | 'occurrenceId' | 'number'>, record: JobAttemptRecord): void {
    const job = jobIdOf(record.workspaceId, record.jobId);
    const stored = this.#states.find(job.workspaceId, job.id);
    const homeId = stored?.record.homeId ?? record.copyId;
    const key = keyOf(place);
    if (this.#own.has(key) || (homeId !== null && !this.#context.cluster.owns(job.workspaceId, homeId)))
      return;
    this.#own.add(key);
    if (stored !== undefined) this.#endLost({ job, stored, ...place });
    unawaited(
      this.#remove({ job, ...place, ...(stored && { stored }) }),
      'attempts: a copy of an ended process',
    );
  }

  /** Ends an attempt that a dead process has begun, unless its end is stored. */
  #endLost(attempt: Attempt): void {
    const { runs } = this.#context;
    const { job, occurrenceId, number } = attempt;
    const { workspaceId } = job;
    const occurrence = this.#states.actors.restore(job)?.snapshot.context.occurrence;
    if (occurrence?.id !== occurrenceId || occurrence.attempt !== number) return;
    if (occurrence.retryAtMs !== null) return;
    const { runId } = occurrence;
    // A stale run ends only by a cancel, and nobody will look for this one.
    if (runId !== null && runs.reader.exists(workspaceId, runId) && runs.reader.isStale(workspaceId, runId))
      runs.cancel(workspaceId, runId, () => {});
    this.#decideEnd(attempt, { status: 'failed', failure: LOST });
  }

  async #carryOut(attempt: Attempt): Promise<void> {
    const made: Made = { copyId: null, environmentId: null };
    const failure = await this.#run(attempt, made).catch((error: unknown) => this.#reasonOf(error));
    if (failure === null) return; // the end of its run ends the attempt
    await this.#end(attempt, { status: 'failed', failure });
  }

  /** Makes a copy of the notebook, opens it and begins its run. Resolves with the reason why there is no run, or with null. */
  async #run(attempt: Attempt, made: Made): Promise<JobReason | null> {
    const { copies, executions, isEnding } = this.#parts;
    const { job, stored, occurrenceId, slot } = attempt;
    const { workspaceId, id: jobId } = job;
    const { ownerId, readsDatasources } = stored.record;
    const { target, arguments: words, timeoutS, metadata } = stored.definition;
    if (isEnding()) return LOST;
    const marks = { ...metadata, job: jobId, occurrence: occurrenceId };
    const copy: NewCopy = {
      workspaceId,
      notebookId: target.notebookId,
      by: { userId: ownerId, readsDatasources },
      arguments: words,
      datasourceSlugs: target.datasourceSlugs,
      metadata: marks,
      // The copy and its runs have the home of the job, so that one worker decides everything about a firing.
      accepts: (id) => slotText(slotOf(workspaceId, id)) === slot,
      note: (tx, copyId) => {
        made.copyId = copyId;
        this.#put(tx, attempt, made);
      },
    };
    const copyId = await copies.make(copy);
    await copies.open(copy, copyId, (environmentId) => {
      made.environmentId = environmentId;
      this.#context.store.write((tx) => this.#put(tx, attempt, made));
    });
    const failure = await copies.ready(workspaceId, copyId);
    if (failure !== null) return failure;
    const { cells } = target;
    const request =
      cells === undefined
        ? ({ type: 'all' } as const)
        : ({ type: 'cells', cells: cells.map((cellId) => ({ cellId })) } as const);
    const limits = { ...(timeoutS === null ? {} : { timeoutS }), metadata: marks };
    const submitted = executions.submit({ workspaceId, userId: ownerId as UserId }, copyId, {
      ...request,
      ...limits,
    });
    const { runId } = submitted instanceof Promise ? await submitted : submitted;
    // In the turn in which the run begins, so that the run and the job that has it are one commit.
    this.#byRun.set(runId, attempt);
    this.#states.tell(job, { type: 'begun', runId });
    this.#states.changeOccurrence(job, occurrenceId, { status: 'running', runId });
    faultPoint('job.running');
    return null;
  }

  /** Ends an attempt: its occurrence is over, or is attempted again after a pause. Resolves once the copy is removed. */
  async #end(attempt: Attempt, end: End): Promise<void> {
    this.#decideEnd(attempt, end);
    await this.#remove(attempt);
  }

  #decideEnd({ job, stored, occurrenceId, number }: Attempt, { status, failure }: End): void {
    const nowMs = Date.now();
    const mayRetry = failure !== null && RETRYABLE.has(failure.code) && number <= stored.definition.retries;
    const retryAtMs = mayRetry ? nowMs + FIRST_PAUSE_MS * 2 ** (number - 1) : null;
    this.#states.tell(job, { type: 'over', failure, retryAtMs });
    this.#states.changeOccurrence(job, occurrenceId, {
      reason: failure === null ? null : { code: failure.code, message: failure.message },
      ...(mayRetry ? { status: 'backing-off' } : { status, finishedAt: timestamp(nowMs) }),
    });
    faultPoint('job.ended');
  }

  /** Removes the copy of an attempt, and then the attempt itself. */
  async #remove({
    job,
    stored,
    occurrenceId,
    number,
    slot,
  }: Omit<Attempt, 'stored'> & Partial<Attempt>): Promise<void> {
    const { store } = this.#context;
    const key = [slot, occurrenceId, String(number)] as const;
    const record = store.get(jobAttempts, SYSTEM, ...key);
    if (record === undefined) return;
    const { copyId, environmentId } = record;
    const forget = (tx: Transaction) => tx.remove(jobAttempts, SYSTEM, ...key);
    const by = stored?.record.ownerId ?? '';
    try {
      if (copyId === null) store.write(forget);
      else
        await this.#parts.copies.remove({ workspaceId: job.workspaceId, copyId, environmentId, by }, forget);
      this.#own.delete(keyOf({ occurrenceId, number }));
    } catch (error) {
      // The record stays, so that the next process removes the copy.
      if (!this.#parts.isEnding())
        this.#context.log.error(
          { err: error, copyId },
          'the copy of a notebook that a job has run could not be removed',
        );
    }
  }

  #put(tx: Transaction, { job, occurrenceId, number, slot }: Attempt, made: Made): void {
    const record = { workspaceId: job.workspaceId, jobId: job.id, ...made };
    tx.put(jobAttempts, record, SYSTEM, slot, occurrenceId, String(number));
  }

  #reasonOf(error: unknown): JobReason {
    if (error instanceof AppError) return { code: error.code, message: error.message };
    if (this.#parts.isEnding()) return LOST;
    this.#context.log.error({ err: error }, 'an occurrence of a job failed');
    return BROKEN;
  }
}

function keyOf({ occurrenceId, number }: Pick<Attempt, 'occurrenceId' | 'number'>): string {
  return `${occurrenceId}/${number}`;
}
