/** The words of the notebook session's chart: its facts, events, guards and actions. How they hang together is the chart. */
import { assign, emit, fromCallback, sendTo, setup, stateIn } from 'xstate';
import type { Failure } from '#src/core/errors.ts';
import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/core/ids.ts';
import type { Refusals } from '#src/core/refusals.ts';
import { type SessionNotice, unprovided } from './any-session.ts';
import type { TerminalStatus } from './run.ts';

export type SessionMode = 'edit' | 'run';
export type SessionStatus = 'starting' | 'ready' | 'busy' | 'restoring' | 'failed' | 'closing' | 'closed';

/** What keeps a session busy: a durable run, one call of the code endpoint, or the judging of code before it is run. */
export interface Work {
  readonly kind: 'run' | 'code' | 'check';
  readonly id: string;
}

/** Whoever opened the session: its notebook code reads what they may read. */
export interface Opener {
  readonly userId: string;
  /** Whether their token was good for datasources. */
  readonly readsDatasources: boolean;
}

export interface SessionInput {
  readonly workspaceId: WorkspaceId;
  readonly notebookId: NotebookId;
}

export interface SessionContext extends SessionInput {
  readonly environmentId: EnvironmentId | null;
  readonly mode: SessionMode;
  readonly openedAt: string | null;
  readonly openedBy: Opener | null;
  readonly work: Work | null;
  readonly phases: Readonly<Record<string, number>>;
  readonly failure: Failure | null;
  /** Kernels that died within a minute of their start, in a row. */
  readonly earlyDeaths: number;
}

export type KernelOrder = { type: 'execute'; work: Work } | { type: 'interrupt' | 'kill' | 'stop' };

export type SessionEvent =
  | { type: 'open'; environmentId: EnvironmentId; mode: SessionMode; at: string; by: Opener }
  | { type: 'execute'; work: Work; edits: boolean }
  | { type: 'cancel'; workId: string }
  | { type: 'close' }
  | { type: 'wake' }
  | { type: 'suspend'; failure: Failure }
  | { type: 'hibernate' }
  | { type: 'restored' }
  | { type: 'kernel.ready'; phases: Readonly<Record<string, number>> }
  | { type: 'kernel.done'; workId: string; status: TerminalStatus; failure: Failure | null }
  | KernelExited;

interface KernelExited {
  readonly type: 'kernel.exited';
  readonly uptimeMs: number;
  readonly failure: Failure;
}

export type NotebookSessionNotice = SessionNotice<SessionStatus>;

export interface EndedWork {
  readonly work: Work;
  readonly status: TerminalStatus;
  readonly failure: Failure | null;
}

const EARLY_DEATHS_LIMIT = 3;
const EARLY_MS = 60_000;
export const TIMED_OUT: Failure = {
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

/** The end of the process that runs all kernels says nothing about this one. */
function isEarlyDeath({ uptimeMs, failure }: KernelExited): boolean {
  return uptimeMs < EARLY_MS && failure.code !== 'kernel_host_lost';
}

export const sessionVocabulary = setup({
  types: {} as {
    input: SessionInput;
    context: SessionContext;
    events: SessionEvent;
    emitted: NotebookSessionNotice;
    meta: Refusals<SessionEvent['type']>;
    tags: 'resident';
  },
  actors: { kernel: fromCallback<KernelOrder, SessionContext>(unprovided('kernel')) },
  delays: {
    startDeadline: 60_000,
    cancelGrace: 3_000,
    killDeadline: 5_000,
    closeDeadline: 3_000,
    retryPause: 5_000,
  },
  guards: {
    mayEdit: ({ context }, edits: boolean) => context.mode === 'edit' || !edits,
    isCurrent: ({ context }, workId: string) => context.work?.id === workId,
    isKilled: stateIn({ live: { busy: 'killing' } }),
    isClosing: stateIn({ live: 'closing' }),
    mayRestore: ({ context }, exit: KernelExited) =>
      !isEarlyDeath(exit) || context.earlyDeaths + 1 < EARLY_DEATHS_LIMIT,
  },
  actions: {
    begin: assign(
      (_, event: { environmentId: EnvironmentId; mode: SessionMode; at: string; by: Opener }) => ({
        environmentId: event.environmentId,
        mode: event.mode,
        openedAt: event.at,
        openedBy: event.by,
        work: null,
        phases: {},
        failure: null,
        earlyDeaths: 0,
      }),
    ),
    takeWork: assign((_, work: Work) => ({ work })),
    dropWork: assign({ work: null }),
    noteReady: assign((_, phases: Readonly<Record<string, number>>) => ({ phases, failure: null })),
    noteFailure: assign((_, failure: Failure) => ({ failure })),
    noteDeath: assign(({ context }, exit: KernelExited) => {
      if (isEarlyDeath(exit)) return { earlyDeaths: context.earlyDeaths + 1 };
      return exit.uptimeMs < EARLY_MS ? {} : { earlyDeaths: 0 };
    }),
    forgetDeaths: assign({ earlyDeaths: 0, failure: null }),
    tellKernel: sendTo('kernel', (_, order: KernelOrder) => order),
    announce: emit((_, params: { status: SessionStatus; reason?: string }) => ({
      type: 'session.status' as const,
      status: params.status,
      reason: params.reason ?? null,
    })),
    announceClosed: emit({ type: 'session.closed', reason: 'closed' }),
    /** Ends the run record or answers the code call; does nothing when there is no work. */
    endWork: unprovided('endWork') as (
      _: { context: SessionContext },
      params: { status: TerminalStatus; failure: Failure | null },
    ) => void,
    /** Closes what is bound to the session, in this turn; does nothing when that is closed. */
    closeBound: unprovided('closeBound') as (_: { context: SessionContext }) => void,
    /** Detaches the session from its environment. */
    release: unprovided('release') as (_: { context: SessionContext }) => void,
  },
});
