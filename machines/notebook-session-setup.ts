/** The parts of the notebook session's chart: its context, events, guards and actions. The chart combines them. */

import { assign, emit, fromCallback, sendTo, setup, stateIn } from 'xstate';
import type { Failure } from '#src/base/errors/errors.ts';
import type { FailureCode } from '#src/base/errors/failures.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/base/ids.ts';
import type { TerminalStatus } from '#src/contract/wire/run.ts';
import type { SessionMode, SessionStatus } from '#src/contract/wire/session.ts';
import {
  type Closer,
  closedNotice,
  NO_DEADLINE_MS,
  OUT_OF_TIME,
  type SessionNotice,
  sessionClosed,
  unprovided,
} from './any-session.ts';

/**
 * A piece of work that keeps a session busy: a durable run, a call of the code endpoint, or the check of new code
 * before it runs.
 */
export interface Work {
  readonly kind: 'run' | 'code' | 'check' | 'element';
  readonly id: string;
  /** The user who asked for the work; absent when not known. */
  readonly by?: string;
  /** The deadline of the work, in milliseconds after the session takes it; absent: no deadline. */
  readonly timeoutMs?: number;
  /** Whether the deadline of the work has interrupted it. */
  readonly isOutOfTime?: true;
}

/** The member who opened the session. Its notebook code reads with the rights of this member. */
export interface Opener {
  readonly userId: string;
  /** Whether the opener's access token had the scope for datasources. */
  readonly readsDatasources: boolean;
}

/** Why a session was put to sleep: nobody used it, or somebody asked for it, such as to restart its kernel. */
export const SLEEP_REASONS = ['idle', 'hibernated'] as const;
export type SleepReason = (typeof SLEEP_REASONS)[number];

/** Why a kernel of a session has ended. */
export type KernelEnd = SleepReason | FailureCode;

/** When a session ends by itself, in seconds; null: never. */
export interface Lifetime {
  /** Seconds after the session was opened. */
  readonly ttlS: number | null;
  /** Seconds after the last use of the session. */
  readonly idleTimeoutS: number | null;
}

export interface SessionInput {
  readonly workspaceId: WorkspaceId;
  readonly notebookId: NotebookId;
}

export interface SessionContext extends SessionInput, Closer {
  readonly environmentId: EnvironmentId | null;
  readonly mode: SessionMode;
  /** Command-line arguments of the notebook. */
  readonly arguments: readonly string[];
  readonly openedAt: string | null;
  readonly openedBy: Opener | null;
  /** How the session ends by itself. */
  readonly lifetime: Lifetime;
  readonly metadata: Readonly<Record<string, string>> | null;
  readonly work: Work | null;
  readonly phases: Readonly<Record<string, number>>;
  readonly failure: Failure | null;
  /** Why the last kernel has ended; null for the first one. */
  readonly kernelEnd: KernelEnd | null;
  /** How many kernels in a row died within a minute of their start. */
  readonly earlyDeaths: number;
}

/** The session's commands to the driver of its kernel. */
export type DriverCommand = { type: 'execute'; work: Work } | { type: 'interrupt' | 'kill' | 'stop' };

/** How a session is opened. */
interface Opening {
  readonly environmentId: EnvironmentId;
  readonly mode: SessionMode;
  readonly arguments: readonly string[];
  readonly at: string;
  readonly by: Opener;
  readonly lifetime: Lifetime;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export type NotebookSessionEvent =
  | ({ type: 'open' } & Opening)
  | { type: 'execute'; work: Work; edits: boolean }
  /** Asks whether the session is in this environment. The four events that ask a question change nothing. */
  | { type: 'shareEnvironment'; environmentId: EnvironmentId }
  /** Asks whether an agent can be bound to the session now. */
  | { type: 'bindAgent' }
  /**
   * Asks whether the saved notebook may be changed, which an open session refuses, because it owns the
   * document.
   */
  | { type: 'changeSaved' }
  /** Asks whether the work of the session, if it has any, can be interrupted. */
  | { type: 'interrupt' }
  | { type: 'cancel'; workId: string }
  /** `by` is the user who closes the session; absent when the session ends by itself. */
  | { type: 'close'; by?: string | undefined }
  | { type: 'wake' }
  | { type: 'suspend'; failure: Failure }
  | { type: 'hibernate'; reason: SleepReason }
  | { type: 'restored' }
  /** Whether packages are being installed before the kernel is forked, which may take minutes. */
  | { type: 'kernel.installing' }
  | { type: 'kernel.installed' }
  | { type: 'kernel.ready'; phases: Readonly<Record<string, number>> }
  | { type: 'kernel.done'; workId: string; status: TerminalStatus; failure: Failure | null }
  | KernelExited;

interface KernelExited {
  readonly type: 'kernel.exited';
  readonly uptimeMs: number;
  readonly failure: Failure;
}

export type NotebookSessionNotice = SessionNotice<SessionStatus>;

/** The end of a piece of work. */
export interface WorkEnd {
  readonly status: TerminalStatus;
  readonly failure: Failure | null;
}

const MAX_EARLY_DEATHS = 3;
const EARLY_MS = 60_000;
const TIMED_OUT: Failure = {
  code: 'kernel_start_timeout',
  message: 'The kernel did not become ready in time.',
};
export const BROKEN: Failure = {
  code: 'kernel_start_failed',
  message: 'The kernel could not be started or driven.',
};
export const KILLED: Failure = {
  code: 'kernel_killed',
  message:
    'An interrupt did not stop this, so the kernel was killed: the variables of the notebook are lost.',
};
export const STUCK: Failure = { code: 'kernel_stuck', message: 'The kernel did not end when it was killed.' };

/** A kernel that ended together with the process that runs all kernels does not count. */
function isEarlyDeath({ uptimeMs, failure }: KernelExited): boolean {
  return uptimeMs < EARLY_MS && failure.code !== 'kernel_host_lost';
}

export const notebookSessionSetup = setup({
  types: {} as {
    input: SessionInput;
    context: SessionContext;
    events: NotebookSessionEvent;
    emitted: NotebookSessionNotice;
    meta: Refusals<NotebookSessionEvent['type']>;
    /**
     * `passing`: the session leaves the state by itself, and may then be ready. `unstored`: the state is not stored, because a
     * restart treats it like the state before it.
     */
    tags: 'resident' | 'passing' | 'unstored';
  },
  actors: { kernel: fromCallback<DriverCommand, SessionContext>(unprovided('kernel')) },
  delays: {
    startDeadline: 60_000,
    installDeadline: 20 * 60_000,
    cancelGrace: 3_000,
    killDeadline: 5_000,
    workDeadline: ({ context: { work, notebookId } }) => {
      invariant(work !== null, 'A busy session has work.', notebookId);
      return work.timeoutMs ?? NO_DEADLINE_MS;
    },
    closeDeadline: 3_000,
    retryPause: 5_000,
  },
  guards: {
    mayEdit: ({ context }, edits: boolean) => context.mode === 'edit' || !edits,
    isCurrent: ({ context }, workId: string) => context.work?.id === workId,
    hasDeadline: ({ context }) => context.work?.timeoutMs !== undefined,
    isInEnvironment: ({ context }, environmentId: EnvironmentId) => context.environmentId === environmentId,
    isKilled: stateIn({ live: { busy: 'killing' } }),
    isClosing: stateIn({ live: 'closing' }),
    mayRestore: ({ context }, exit: KernelExited) =>
      !isEarlyDeath(exit) || context.earlyDeaths + 1 < MAX_EARLY_DEATHS,
  },
  actions: {
    begin: assign((_, event: Opening) => ({
      environmentId: event.environmentId,
      mode: event.mode,
      arguments: event.arguments,
      openedAt: event.at,
      openedBy: event.by,
      lifetime: event.lifetime,
      metadata: event.metadata ?? null,
      closedBy: null,
      work: null,
      phases: {},
      failure: null,
      kernelEnd: null,
      earlyDeaths: 0,
    })),
    noteKernelEnd: assign((_, kernelEnd: KernelEnd) => ({ kernelEnd })),
    noteCloser: assign((_, by: string | undefined) => ({ closedBy: by ?? null })),
    takeWork: assign(({ context }, work: Work) => {
      invariant(context.work === null, 'A session that is not busy has no work.', context.notebookId);
      return { work };
    }),
    noteOutOfTime: assign(({ context: { work } }) => ({ work: work && { ...work, isOutOfTime: true } })),
    dropWork: assign({ work: null }),
    noteReady: assign((_, phases: Readonly<Record<string, number>>) => ({ phases, failure: null })),
    noteFailure: assign((_, failure: Failure) => ({ failure })),
    noteDeath: assign(({ context }, exit: KernelExited) => {
      if (isEarlyDeath(exit)) return { earlyDeaths: context.earlyDeaths + 1 };
      return exit.uptimeMs < EARLY_MS ? {} : { earlyDeaths: 0 };
    }),
    forgetDeaths: assign({ earlyDeaths: 0, failure: null }),
    tellKernel: sendTo('kernel', (_, command: DriverCommand) => command),
    /** Nothing changes, because the event only asks whether the state takes such an event. */
    permit: () => undefined,
    announce: emit((_, params: { status: SessionStatus; reason?: string }) => ({
      type: 'session.status' as const,
      status: params.status,
      reason: params.reason ?? null,
    })),
    announceClosed: emit(({ context }) => closedNotice(context)),
    /** Ends the run's record or returns the call's result; does nothing when there is no work. */
    endWork: unprovided('endWork') as (_: { context: SessionContext }, end: WorkEnd) => void,
    /** Closes, in this turn, the conversation that is bound to the session, if it is open. */
    closeBound: unprovided('closeBound') as (_: { context: SessionContext }) => void,
    /** Detaches the session from its environment. */
    release: unprovided('release') as (_: { context: SessionContext }) => void,
  },
});

const FAIL_LATE = {
  target: '#notebookSession.failed',
  actions: { type: 'noteFailure', params: TIMED_OUT },
} as const;

/** For `starting` and `restoring`: the kernel becomes ready in time, or the session fails. */
export const UNTIL_READY = notebookSessionSetup.createStateConfig({
  tags: 'passing',
  on: {
    'kernel.ready': {
      target: 'ready',
      actions: { type: 'noteReady', params: ({ event }) => event.phases },
    },
  },
  initial: 'forking',
  states: {
    forking: { on: { 'kernel.installing': 'installing' }, after: { startDeadline: FAIL_LATE } },
    installing: { on: { 'kernel.installed': 'forking' }, after: { installDeadline: FAIL_LATE } },
  },
});

/** Ends the work, if there is any, and forgets it. */
export const concludeWork = (end: WorkEnd) => [{ type: 'endWork', params: end }, 'dropWork'] as const;

/** Returns how stopped work ends. It has failed if its deadline stopped it. */
export function endOfStopped(work: Work | null, { status, failure }: WorkEnd): WorkEnd {
  if (work?.isOutOfTime !== true || status !== 'cancelled') return { status, failure };
  if (failure === null) return { status: 'failed', failure: OUT_OF_TIME };
  return {
    status: 'failed',
    failure: { ...OUT_OF_TIME, message: `${OUT_OF_TIME.message} ${failure.message}` },
  };
}

/** Ends the work of a session that is being closed, if there is any, and forgets it. */
export const CLOSE_WORK = [
  {
    type: 'endWork',
    params: ({ context }: { readonly context: SessionContext }): WorkEnd => ({
      status: 'cancelled',
      failure: sessionClosed(context),
    }),
  },
  'dropWork',
] as const;

/** Notes that the user named in the event closes the session. */
export const NOTE_CLOSER = {
  type: 'noteCloser',
  params: ({ event }: { readonly event: { readonly by?: string | undefined } }) => event.by,
} as const;

/** Ends work that continued after its interrupt, with `failure` as the reason, and forgets it. */
export const concludeStopped = (failure: Failure) =>
  [
    {
      type: 'endWork',
      params: ({ context }: { readonly context: SessionContext }) =>
        endOfStopped(context.work, { status: 'cancelled', failure }),
    },
    'dropWork',
  ] as const;

interface Failing {
  readonly event: { readonly failure: Failure };
}

/** Ends the work as failed, for the reason that the event gives. */
export const FAIL_WORK = [
  {
    type: 'endWork',
    params: ({ event: { failure } }: Failing): WorkEnd => ({ status: 'failed', failure }),
  },
  'dropWork',
] as const;
/** Notes that the kernel has ended, for the reason that the event gives. */
export const NOTE_KERNEL_END = {
  type: 'noteKernelEnd',
  params: ({ event }: Failing) => event.failure.code,
} as const;
/** Notes the reason that the event gives. */
export const NOTE_FAILURE = {
  type: 'noteFailure',
  params: ({ event }: Failing) => event.failure,
} as const;
