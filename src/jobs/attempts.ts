/**
 * The attempts of occurrences. Each begins a run: on a copy of the job's notebook in a session of its own, on the open session of the
 * notebook, or in a conversation. An attempt is stored from its beginning until its run has ended and its copy is removed, so that the
 * next process ends what a dead process has begun.
 */

import type { JobReason } from '#machines/job.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { OccurrenceId, RunId, SessionId, UserId, WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { ExecutionRequest, PromptRequest, RunKind, TerminalStatus } from '#src/contract/wire/run.ts';
import type { Executions } from '#src/notebook/requests/executions.ts';
import type { NewCopy, NotebookCopies } from '#src/notebook/requests/notebook-copies.ts';
import type { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import type { ActorId } from '#src/runtime/actors/address.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { RunPlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { slotOfText, slotText } from '#storage/lists/timed-places.ts';
import { type JobAttemptRecord, jobAttempts } from '#storage/records/jobs.ts';
import type { Transaction } from '#storage/transaction.ts';
import { AttemptLine, type WaitingAttempt } from './attempt-line.ts';
import { type JobStates, jobIdOf, type StoredJob } from './job-states.ts';
import type { Reports } from './reports.ts';
import {
  type ConversationTarget,
  isConversation,
  isOpenSession,
  type NotebookTarget,
  obstacleOf,
  type Targets,
} from './targets.ts';

/** The parts of other rooms that attempts use. */
export interface AttemptParts {
  readonly copies: NotebookCopies;
  readonly executions: Executions;
  readonly sessions: Pick<NotebookSessions, 'whenAwake' | 'room'>;
  /** Rejects with `quota_exceeded` when the files of a workspace take more space than they may. */
  readonly admitFiles: (workspaceId: WorkspaceId) => Promise<void>;
  /** Prompts a conversation in the name of the caller. */
  readonly prompt: (
    caller: ReturnType<Targets['owner']>,
    sessionId: string,
    request: PromptRequest,
  ) => Promise<{ readonly runId: RunId }>;
  /** Interrupts the work of a run in a kernel or in an agent. */
  readonly stopRun: (kind: RunKind, workspaceId: WorkspaceId, sessionId: SessionId, runId: RunId) => void;
  /** Returns whether the server is ending, so that no attempt begins. */
  readonly isEnding: () => boolean;
}

/** One attempt of an occurrence. */
interface Attempt {
  readonly job: ActorId;
  readonly occurrenceId: OccurrenceId;
  readonly number: number;
  readonly slot: string;
}

/** An attempt of this process. */
interface OwnAttempt extends Attempt {
  /** Its place in the line; undefined once it is carried out. */
  waiting: WaitingAttempt | undefined;
  /** The run of the attempt, until the run has ended. */
  runId: RunId | undefined;
  /** Whether its end is decided. A further end changes nothing. */
  isOver: boolean;
  /** Called when the run ends. */
  ended: () => void;
}

/** The copy and the environment of an attempt. Each is null until the attempt has made it. */
interface Made {
  copyId: string | null;
  environmentId: string | null;
}

/** How an attempt ended. `skipped`: it had no run, because its target could not take one. */
interface End {
  readonly status: TerminalStatus | 'skipped';
  readonly failure: JobReason | null;
  /** Whether the occurrence is not attempted again, because the job may not work any more. */
  readonly isFinal?: boolean;
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

/** Refusals of limits of sessions and runs. An attempt waits until there is room. */
const LIMITS: ReadonlySet<string> = new Set(['at_capacity', 'quota_exceeded']);

const LOST: JobReason = {
  code: 'server_stopped',
  message: 'The server ended while the occurrence was in progress.',
};
const BROKEN: JobReason = {
  code: 'internal',
  message: 'The occurrence failed because of a fault of the server.',
};
const SUPERSEDED: JobReason = {
  code: 'superseded',
  message: 'The next instant of the job has come, and the job cancels the occurrence before it.',
};

export class Attempts implements Disposable {
  readonly #context: RunPlaneContext;
  readonly #states: JobStates;
  readonly #targets: Targets;
  readonly #reports: Pick<Reports, 'keep'>;
  readonly #parts: AttemptParts;
  readonly #line = new AttemptLine();
  /** The attempts of this process by their keys. */
  readonly #own = new Map<string, OwnAttempt>();
  readonly #byRun = new Map<string, OwnAttempt>();

  constructor(
    context: RunPlaneContext,
    states: JobStates,
    targets: Targets,
    reports: Pick<Reports, 'keep'>,
    parts: AttemptParts,
  ) {
    this.#context = context;
    this.#states = states;
    this.#targets = targets;
    this.#reports = reports;
    this.#parts = parts;
    // In the turn in which the run ends, so that its end and that of the occurrence are one commit.
    context.runs.onEnded(({ id }, { status, error }) => {
      const attempt = this.#byRun.get(id);
      if (attempt !== undefined) this.#runEnded(attempt, status, error ?? null);
    });
  }

  /** Puts the present attempt of a job that is due into the line. It is stored in the commit of this turn. */
  begin(job: ActorId, stored: StoredJob): void {
    const occurrence = this.#states.actors.peek(job)?.snapshot.context.occurrence;
    if (occurrence == null) return;
    const slot = slotText(slotOf(job.workspaceId, stored.record.homeId));
    const attempt = { job, occurrenceId: occurrence.id, number: occurrence.attempt, slot };
    this.#context.store.write((tx) => this.#put(tx, attempt, NOTHING_MADE));
    if (attempt.number > 1)
      this.#states.changeOccurrence(job, attempt.occurrenceId, { status: 'due', attempts: attempt.number });
    faultPoint('job.fired');
    this.#enqueue(attempt, occurrence.dueMs);
  }

  /**
   * Ends the attempt of an occurrence that is superseded. Call it after the job has taken the event. An occurrence without a run is
   * over at once; the run of another one is cancelled, and the occurrence is over with the run.
   */
  supersede(job: ActorId, occurrenceId: OccurrenceId, number: number): void {
    const attempt = this.#own.get(keyOf({ occurrenceId, number }));
    if (attempt?.runId !== undefined) {
      this.#cancelRun(attempt, attempt.runId);
      faultPoint('job.superseded');
      return;
    }
    this.#states.changeOccurrence(job, occurrenceId, {
      status: 'cancelled',
      reason: SUPERSEDED,
      finishedAt: timestamp(),
    });
    if (attempt === undefined) return; // between two attempts
    attempt.isOver = true;
    if (attempt.waiting !== undefined && this.#line.remove(attempt.waiting))
      unawaited(this.#remove(attempt), 'attempts: the record of an attempt that has not begun');
  }

  #enqueue(attempt: Attempt, dueMs: number): void {
    const own: OwnAttempt = {
      ...attempt,
      waiting: undefined,
      runId: undefined,
      isOver: false,
      ended: () => undefined,
    };
    this.#own.set(keyOf(own), own);
    this.#wait(own, dueMs);
  }

  #wait(attempt: OwnAttempt, dueMs: number): void {
    const { workspaceId, id } = attempt.job;
    const record = this.#states.find(workspaceId, id)?.record;
    attempt.waiting = {
      dueMs,
      workspaceId,
      holder: `${workspaceId}/${record?.ownerId}`,
      carryOut: () => this.#carryOut(attempt, dueMs),
    };
    this.#line.add(attempt.waiting);
  }

  /**
   * Yields the slots of the attempts of this process until everything that they have made is removed. The removal writes the session
   * of a copy, so the slot must not leave this worker before.
   */
  *busySlots(): Generator<number> {
    for (const { slot } of this.#own.values()) yield slotOfText(slot);
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
    if (this.#own.has(keyOf(place))) return;
    if (homeId !== null && !this.#context.cluster.owns(job.workspaceId, homeId)) return;
    const attempt = { job, ...place };
    const occurrence = stored && this.#states.actors.restore(job)?.snapshot.context.occurrence;
    const isPresent =
      occurrence?.id === place.occurrenceId &&
      occurrence.attempt === place.number &&
      occurrence.retryAtMs === null;
    // An attempt that has made nothing has only waited, and it waits again.
    if (isPresent && occurrence.runId === null && record.copyId === null) {
      this.#enqueue(attempt, occurrence.dueMs);
      return;
    }
    const own = { ...attempt, waiting: undefined, runId: undefined, isOver: false, ended: () => undefined };
    this.#own.set(keyOf(own), own);
    if (isPresent) this.#endLost(own, occurrence.runId);
    unawaited(this.#finish(own), 'attempts: a copy of an ended process');
  }

  /** Ends an attempt that a dead process has begun, unless its end is stored. */
  #endLost(attempt: OwnAttempt, runId: RunId | null): void {
    const { runs } = this.#context;
    const { workspaceId } = attempt.job;
    // A stale run ends only by a cancel, and nobody will look for this one.
    if (runId !== null && runs.reader.exists(workspaceId, runId) && runs.reader.isStale(workspaceId, runId))
      runs.cancel(workspaceId, runId, () => {});
    this.#decideEnd(attempt, { status: 'failed', failure: LOST });
  }

  /**
   * Carries an attempt out. Resolves once everything that it has made is removed, so that another attempt can have its place: with
   * false when there was no room, and the attempt waits again.
   */
  async #carryOut(attempt: OwnAttempt, dueMs: number): Promise<boolean> {
    attempt.waiting = undefined;
    if (this.#parts.isEnding()) return true; // the next process finds the attempt
    const ended = new Promise<void>((resolve) => {
      attempt.ended = resolve;
    });
    const end = await this.#run(attempt).catch((error: unknown) => this.#endOf(attempt, error));
    if (end === 'no room') return !(await this.#waitAgain(attempt, dueMs));
    if (end !== null) this.#decideEnd(attempt, end);
    else await ended;
    await this.#finish(attempt);
    return true;
  }

  /** Keeps the report of an attempt that is over, and removes everything that the attempt has made. */
  async #finish(attempt: Attempt): Promise<void> {
    const { job, slot, occurrenceId, number } = attempt;
    const copyId = this.#context.store.get(jobAttempts, SYSTEM, slot, occurrenceId, String(number))?.copyId;
    if (copyId != null && !this.#parts.isEnding()) {
      const isDecided = await this.#reports.keep(job, occurrenceId, number, copyId);
      if (!isDecided) return; // the copy stays, and the next process keeps its page
    }
    await this.#remove(attempt);
  }

  /** Removes the copy of an attempt that found no room, and puts the attempt back into the line. Returns false when it is over. */
  async #waitAgain(attempt: OwnAttempt, dueMs: number): Promise<boolean> {
    await this.#remove(attempt, (tx) => this.#put(tx, attempt, NOTHING_MADE));
    if (attempt.isOver) {
      await this.#remove(attempt);
      return false;
    }
    this.#own.set(keyOf(attempt), attempt);
    this.#wait(attempt, dueMs);
    return true;
  }

  /** Begins the run of an attempt. Resolves with the end of an attempt that has no run, or with null. */
  async #run(attempt: OwnAttempt): Promise<End | null> {
    const { job } = attempt;
    const { workspaceId } = job;
    this.#context.store.refreshShared();
    const stored = this.#states.find(workspaceId, job.id);
    if (stored === undefined) return { status: 'failed', failure: BROKEN };
    const { target } = stored.definition;
    const refusal = this.#targets.refusal(workspaceId, stored);
    if (refusal !== undefined) {
      this.#states.tell(job, { type: 'pause', reason: refusal });
      return { ...this.#skippedOrFailed(attempt, refusal), isFinal: true };
    }
    if (isConversation(target)) return this.#promptConversation(attempt, stored, target);
    return isOpenSession(target)
      ? this.#runOnOpenSession(attempt, stored, target)
      : this.#runOnCopy(attempt, stored, target);
  }

  async #promptConversation(
    attempt: OwnAttempt,
    stored: StoredJob,
    { agentSessionId, prompt }: ConversationTarget,
  ): Promise<End | null> {
    const { workspaceId } = attempt.job;
    const caller = this.#targets.owner(workspaceId, stored.record);
    const request = { prompt, ...limitsOf(attempt, stored) };
    const { runId } = await inRoom(() => this.#parts.prompt(caller, agentSessionId, request));
    return this.#begun(attempt, runId);
  }

  async #runOnOpenSession(
    attempt: OwnAttempt,
    stored: StoredJob,
    target: NotebookTarget,
  ): Promise<End | null> {
    const { workspaceId } = attempt.job;
    const obstacle = this.#targets.obstacle(workspaceId, stored);
    if (obstacle !== undefined) return this.#skippedOrFailed(attempt, obstacle);
    const { signal } = new AbortController(); // nobody leaves, and the start of a kernel has a deadline of its own
    await inRoom(() => this.#parts.sessions.whenAwake(workspaceId, target.notebookId, () => signal));
    return this.#submit(attempt, stored, target, target.notebookId);
  }

  /** Makes a copy of the notebook, opens it and begins its run. */
  async #runOnCopy(attempt: OwnAttempt, stored: StoredJob, target: NotebookTarget): Promise<End | null> {
    const { copies } = this.#parts;
    const { job, slot } = attempt;
    const { workspaceId } = job;
    const { ownerId, readsDatasources } = stored.record;
    const made: Made = { copyId: null, environmentId: null };
    const copy: NewCopy = {
      workspaceId,
      notebookId: target.notebookId,
      by: { userId: ownerId, readsDatasources },
      arguments: [...stored.definition.arguments, ...this.#states.argumentsOf(job, attempt.occurrenceId)],
      datasourceSlugs: 'datasourceSlugs' in target ? target.datasourceSlugs : undefined,
      metadata: limitsOf(attempt, stored).metadata,
      // The copy and its runs have the home of the job, so that one worker decides everything about a firing.
      accepts: (id) => slotText(slotOf(workspaceId, id)) === slot,
      note: (tx, copyId) => {
        made.copyId = copyId;
        this.#put(tx, attempt, made);
      },
    };
    const { admitFiles, sessions } = this.#parts;
    await admitFiles(workspaceId);
    inRoomNow(() => sessions.room.admitAfterPeople(workspaceId, ownerId));
    const copyId = await copies.make(copy);
    if (attempt.isOver) return SKIPPED;
    const note = (environmentId: string) => {
      made.environmentId = environmentId;
      this.#context.store.write((tx) => this.#put(tx, attempt, made));
    };
    await inRoom(() => copies.open(copy, copyId, note));
    const failure = attempt.isOver ? null : await copies.ready(workspaceId, copyId);
    if (failure !== null) return { status: 'failed', failure };
    return this.#submit(attempt, stored, target, copyId);
  }

  async #submit(
    attempt: OwnAttempt,
    stored: StoredJob,
    { cells }: NotebookTarget,
    sessionId: string,
  ): Promise<End | null> {
    if (attempt.isOver) return SKIPPED;
    const { workspaceId } = attempt.job;
    const request: ExecutionRequest = {
      ...(cells === undefined
        ? { type: 'all' }
        : { type: 'cells', cells: cells.map((cellId) => ({ cellId })) }),
      ...limitsOf(attempt, stored),
    };
    const userId = stored.record.ownerId as UserId;
    const { executions } = this.#parts;
    const submitted = inRoomNow(() => executions.submit({ workspaceId, userId }, sessionId, request));
    const { runId } = submitted instanceof Promise ? await inRoom(() => submitted) : submitted;
    return this.#begun(attempt, runId);
  }

  /** Notes the run of an attempt, in the turn in which the run begins, so that the run and the job that has it are one commit. */
  #begun(attempt: OwnAttempt, runId: RunId): End | null {
    const { job, occurrenceId } = attempt;
    if (attempt.isOver) {
      this.#cancelRun(attempt, runId);
      return SKIPPED;
    }
    attempt.runId = runId;
    this.#byRun.set(runId, attempt);
    this.#states.tell(job, { type: 'begun', runId });
    this.#states.changeOccurrence(job, occurrenceId, {
      status: 'running',
      runId,
      startedAt: timestamp(),
      reason: null,
    });
    faultPoint('job.running');
    // A run may have ended before its caller was told of it.
    const status = this.#context.runs.reader.endOf(job.workspaceId, runId);
    if (status === 'completed' || status === 'failed' || status === 'cancelled')
      this.#runEnded(attempt, status, null);
    return null;
  }

  #cancelRun({ job: { workspaceId } }: Attempt, runId: RunId): void {
    this.#context.runs.cancel(workspaceId, runId, (kind, sessionId) =>
      this.#parts.stopRun(kind, workspaceId, sessionId, runId),
    );
  }

  #runEnded(attempt: OwnAttempt, status: TerminalStatus, error: JobReason | null): void {
    if (attempt.runId !== undefined) this.#byRun.delete(attempt.runId);
    attempt.runId = undefined;
    this.#decideEnd(attempt, { status, failure: status === 'failed' ? (error ?? BROKEN) : null });
    attempt.ended();
  }

  /** Decides the end of an attempt: its occurrence is over, or is attempted again after a pause. A queued occurrence begins then. */
  #decideEnd(attempt: OwnAttempt, end: End): void {
    if (attempt.isOver) return;
    attempt.isOver = true;
    const { job, occurrenceId, number } = attempt;
    const stored = this.#states.find(job.workspaceId, job.id);
    const nowMs = Date.now();
    const isSuperseded =
      this.#states.actors.restore(job)?.snapshot.matches({ active: 'cancelling' }) === true &&
      end.status !== 'completed';
    const { status, failure }: End = isSuperseded ? { status: 'cancelled', failure: null } : end;
    const retryAtMs =
      stored !== undefined && end.isFinal !== true && mayRetry(stored, status, failure, number)
        ? nowMs + FIRST_PAUSE_MS * 2 ** (number - 1)
        : null;
    const reason = isSuperseded ? SUPERSEDED : failure;
    this.#states.changeOccurrence(job, occurrenceId, {
      reason: reason === null ? null : { code: reason.code, message: reason.message },
      ...(status === 'skipped' ? { attempts: 0 } : {}),
      ...(retryAtMs === null ? { status, finishedAt: timestamp(nowMs) } : { status: 'backing-off' }),
    });
    this.#states.tell(
      job,
      status === 'skipped' ? { type: 'withdraw' } : { type: 'over', failure, retryAtMs },
    );
    faultPoint('job.ended');
    const next = this.#states.actors.peek(job)?.snapshot.context.occurrence;
    if (next == null || next.id === occurrenceId || stored === undefined) return;
    this.#states.changeOccurrence(job, next.id, { status: 'due', attempts: 1 });
    this.begin(job, stored);
  }

  /** Removes the copy of an attempt, and then the attempt itself, or does `instead` in the commit of the removal. */
  async #remove(
    { job, occurrenceId, number, slot }: Attempt,
    instead?: (tx: Transaction) => void,
  ): Promise<void> {
    const { store } = this.#context;
    const key = [slot, occurrenceId, String(number)] as const;
    const record = store.get(jobAttempts, SYSTEM, ...key);
    if (record === undefined) {
      this.#own.delete(keyOf({ occurrenceId, number }));
      return;
    }
    const { copyId, environmentId } = record;
    const forget = instead ?? ((tx: Transaction) => tx.remove(jobAttempts, SYSTEM, ...key));
    const by = this.#states.find(job.workspaceId, job.id)?.record.ownerId ?? '';
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

  #endOf(attempt: OwnAttempt, error: unknown): End | 'no room' {
    if (error instanceof NoRoom) {
      if (this.#parts.isEnding()) return { status: 'failed', failure: LOST };
      const { code, message } = error.refusal;
      if (!attempt.isOver)
        this.#states.changeOccurrence(attempt.job, attempt.occurrenceId, { reason: { code, message } });
      return 'no room';
    }
    if (error instanceof AppError) {
      const target = this.#states.find(attempt.job.workspaceId, attempt.job.id)?.definition.target;
      const obstacle = target && obstacleOf(target, error.code);
      if (obstacle !== undefined) return this.#skippedOrFailed(attempt, obstacle);
      return { status: 'failed', failure: { code: error.code, message: error.message } };
    }
    if (this.#parts.isEnding()) return { status: 'failed', failure: LOST };
    this.#context.log.error({ err: error }, 'an occurrence of a job failed');
    return { status: 'failed', failure: BROKEN };
  }

  /** Returns the end of an attempt whose target takes no run. An occurrence that has had a run fails. */
  #skippedOrFailed({ number }: Attempt, failure: JobReason): End {
    return { status: number === 1 ? 'skipped' : 'failed', failure };
  }

  [Symbol.dispose](): void {
    this.#line[Symbol.dispose]();
  }
}

/** The refusal of a limit. The attempt waits for room. */
class NoRoom extends Error {
  readonly refusal: AppError;

  constructor(refusal: AppError) {
    super(refusal.message);
    this.refusal = refusal;
  }
}

/** Rejects with `NoRoom` when a limit refuses the work. */
async function inRoom<T>(work: () => T): Promise<Awaited<T>> {
  try {
    return await work();
  } catch (error) {
    throw unlessNoRoom(error);
  }
}

/** Throws `NoRoom` when a limit refuses the work. */
function inRoomNow<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw unlessNoRoom(error);
  }
}

function unlessNoRoom(error: unknown): unknown {
  return error instanceof AppError && LIMITS.has(error.code) ? new NoRoom(error) : error;
}

const NOTHING_MADE: Made = { copyId: null, environmentId: null };

/** The end of an attempt that was superseded. Its end is already decided. */
const SKIPPED: End = { status: 'skipped', failure: null };

function mayRetry(
  { definition }: StoredJob,
  status: End['status'],
  failure: JobReason | null,
  number: number,
): boolean {
  if (failure === null || status === 'skipped' || number > definition.retries) return false;
  return definition.retryOn === 'all' || RETRYABLE.has(failure.code);
}

/** Returns the deadline and the metadata of the run of an attempt. */
function limitsOf({ job, occurrenceId }: Attempt, { definition: { timeoutS, metadata } }: StoredJob) {
  return {
    ...(timeoutS === null ? {} : { timeoutS }),
    metadata: { ...metadata, job: job.id, occurrence: occurrenceId },
  };
}

function keyOf({ occurrenceId, number }: Pick<Attempt, 'occurrenceId' | 'number'>): string {
  return `${occurrenceId}/${number}`;
}
