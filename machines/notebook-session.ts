/**
 * One open notebook: owns one kernel, does one piece of work at a time, announces what happened.
 *
 *   closed ─open─► live.starting ─kernel.ready─► live.ready ⇄ live.busy.running ─cancel─► cancelling ─3 s─► killing
 *     ▲               │ deadline                  │    ▲ kernel.ready
 *     │               ▼                           │    └── live.restoring ◄─kernel.exited─ any of live
 *     │            failed.resting ─► .retryable   └─suspend─► dormant          │ third early death, deadline
 *     │               └─wake─► live.restoring ◄──wake── dormant                ▼
 *   closed ◄─ live.closing ◄─close─ live      closed ◄─close─ failed, dormant  failed
 *                                             live.ready ─hibernate─► dormant
 *
 * S1 a kernel exists only inside `live`, and exactly one.  S2 `work` is set exactly in `live.busy`.
 * S3 accepted work is ended exactly once, through `endWork`; only a crash of the server leaves it open.
 * S4 closed stays closed until `open`: a session's id is its notebook's, so it can be opened again.
 * S5 a kernel that was told to die is given nothing more: `killing` is left by its exit, never by its last answer.
 * S6 once `closing`, a session closes, whatever becomes of its kernel.
 * Stored: value and context. A stored `live` claims a kernel that died with the server: `restored` starts another.
 */
import { assign, emit, fromCallback, type SnapshotFrom, sendTo, setup, stateIn } from 'xstate';
import type { Failure } from '#src/core/errors.ts';
import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/core/ids.ts';
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

export type SessionNotice =
  | { type: 'session.status'; status: SessionStatus; reason: string | null }
  | { type: 'session.closed'; reason: string };

export interface EndedWork {
  readonly work: Work;
  readonly status: TerminalStatus;
  readonly failure: Failure | null;
}

const EARLY_DEATHS_LIMIT = 3;
const EARLY_MS = 60_000;
const CLOSED: Failure = { code: 'session_closed', message: 'The session was closed while this was running.' };
const TIMED_OUT: Failure = {
  code: 'kernel_start_timeout',
  message: 'The kernel did not become ready in time.',
};
const BROKEN: Failure = {
  code: 'kernel_start_failed',
  message: 'The kernel could not be started or driven.',
};
const KILLED: Failure = {
  code: 'kernel_killed',
  message:
    'An interrupt did not stop this, so the kernel was killed: the variables of the notebook are lost.',
};
const STUCK: Failure = { code: 'kernel_stuck', message: 'The kernel did not end when it was killed.' };

/** The end of the process that runs all kernels says nothing about this one. */
function isEarlyDeath({ uptimeMs, failure }: KernelExited): boolean {
  return uptimeMs < EARLY_MS && failure.code !== 'kernel_host_lost';
}

const unprovided = (name: string) => (): never => {
  throw new Error(`provide \`${name}\``);
};

export const notebookSessionMachine = setup({
  types: {} as { input: SessionInput; context: SessionContext; events: SessionEvent; emitted: SessionNotice },
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
    begin: assign((_, event: { environmentId: EnvironmentId; mode: SessionMode; at: string; by: Opener }) => ({
      environmentId: event.environmentId,
      mode: event.mode,
      openedAt: event.at,
      openedBy: event.by,
      work: null,
      phases: {},
      failure: null,
      earlyDeaths: 0,
    })),
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
    /** Detaches the session from its environment and closes the agents bound to it. */
    release: unprovided('release') as (_: { context: SessionContext }) => void,
  },
}).createMachine({
  id: 'notebookSession',
  context: ({ input }) => ({
    ...input,
    environmentId: null,
    mode: 'edit',
    openedAt: null,
    openedBy: null,
    work: null,
    phases: {},
    failure: null,
    earlyDeaths: 0,
  }),
  initial: 'closed',
  states: {
    closed: {
      meta: { refuse: { execute: 'session_closed', close: 'session_closed' } },
      on: { open: { target: 'live', actions: { type: 'begin', params: ({ event }) => event } } },
    },
    live: {
      tags: 'resident',
      meta: { refuse: { open: 'session_exists', execute: 'session_not_ready' } },
      invoke: {
        id: 'kernel',
        src: 'kernel',
        input: ({ context }) => context,
        onError: [
          { guard: 'isClosing', target: 'closing' },
          {
            target: 'failed',
            actions: [
              { type: 'endWork', params: { status: 'failed', failure: BROKEN } },
              'dropWork',
              { type: 'noteFailure', params: BROKEN },
            ],
          },
        ],
      },
      on: {
        close: '.closing',
        restored: { target: '.restoring', reenter: true, actions: ['dropWork', 'forgetDeaths'] },
        suspend: {
          target: 'dormant',
          actions: [
            { type: 'endWork', params: ({ event }) => ({ status: 'failed', failure: event.failure }) },
            'dropWork',
          ],
        },
        'kernel.exited': [
          {
            // Here and not in `killing`: only a transition of `live` itself starts another kernel.
            guard: 'isKilled',
            target: '.restoring',
            reenter: true,
            actions: [
              { type: 'endWork', params: { status: 'cancelled', failure: KILLED } },
              'dropWork',
              'forgetDeaths',
              { type: 'noteFailure', params: KILLED },
            ],
          },
          {
            guard: { type: 'mayRestore', params: ({ event }) => event },
            target: '.restoring',
            reenter: true,
            actions: [
              { type: 'endWork', params: ({ event }) => ({ status: 'failed', failure: event.failure }) },
              'dropWork',
              { type: 'noteDeath', params: ({ event }) => event },
              { type: 'noteFailure', params: ({ event }) => event.failure },
            ],
          },
          {
            target: 'failed',
            actions: [
              { type: 'endWork', params: ({ event }) => ({ status: 'failed', failure: event.failure }) },
              'dropWork',
              { type: 'noteFailure', params: ({ event }) => event.failure },
            ],
          },
        ],
      },
      initial: 'starting',
      states: {
        starting: {
          entry: { type: 'announce', params: { status: 'starting' } },
          on: {
            'kernel.ready': {
              target: 'ready',
              actions: { type: 'noteReady', params: ({ event }) => event.phases },
            },
          },
          after: {
            startDeadline: {
              target: '#notebookSession.failed',
              actions: { type: 'noteFailure', params: TIMED_OUT },
            },
          },
        },
        restoring: {
          entry: {
            type: 'announce',
            params: ({ context }) => ({ status: 'restoring', reason: context.failure?.code ?? 'resumed' }),
          },
          on: {
            'kernel.ready': {
              target: 'ready',
              actions: { type: 'noteReady', params: ({ event }) => event.phases },
            },
          },
          after: {
            startDeadline: {
              target: '#notebookSession.failed',
              actions: { type: 'noteFailure', params: TIMED_OUT },
            },
          },
        },
        ready: {
          entry: { type: 'announce', params: { status: 'ready' } },
          meta: { refuse: { execute: 'session_not_editable' } },
          on: {
            hibernate: {
              target: '#notebookSession.dormant',
              actions: { type: 'announce', params: { status: 'ready', reason: 'idle' } },
            },
            execute: {
              guard: { type: 'mayEdit', params: ({ event }) => event.edits },
              target: 'busy',
              actions: [
                { type: 'takeWork', params: ({ event }) => event.work },
                {
                  type: 'tellKernel',
                  params: ({ event }) => ({ type: 'execute', work: event.work }),
                },
              ],
            },
          },
        },
        busy: {
          entry: { type: 'announce', params: { status: 'busy' } },
          meta: { refuse: { execute: 'session_busy' } },
          on: {
            'kernel.done': {
              guard: { type: 'isCurrent', params: ({ event }) => event.workId },
              target: 'ready',
              actions: [
                {
                  type: 'endWork',
                  params: ({ event }) => ({ status: event.status, failure: event.failure }),
                },
                'dropWork',
              ],
            },
          },
          initial: 'running',
          states: {
            running: {
              on: {
                cancel: {
                  guard: { type: 'isCurrent', params: ({ event }) => event.workId },
                  target: 'cancelling',
                },
              },
            },
            cancelling: {
              entry: { type: 'tellKernel', params: { type: 'interrupt' } },
              after: { cancelGrace: 'killing' },
            },
            killing: {
              entry: { type: 'tellKernel', params: { type: 'kill' } },
              on: { 'kernel.done': {} },
              after: {
                killDeadline: {
                  target: '#notebookSession.failed',
                  actions: [
                    { type: 'endWork', params: { status: 'cancelled', failure: STUCK } },
                    'dropWork',
                    { type: 'noteFailure', params: STUCK },
                  ],
                },
              },
            },
          },
        },
        closing: {
          entry: [
            { type: 'announce', params: { status: 'closing' } },
            { type: 'endWork', params: { status: 'cancelled', failure: CLOSED } },
            'dropWork',
            { type: 'tellKernel', params: { type: 'stop' } },
          ],
          meta: { refuse: { execute: 'session_closed' } },
          on: {
            close: 'closing',
            restored: '#notebookSession.closing',
            suspend: '#notebookSession.closing',
            'kernel.exited': '#notebookSession.closing',
          },
          after: { closeDeadline: '#notebookSession.closing' },
        },
      },
    },
    /** Left at once: the kernel is gone, what the session held is given back. */
    closing: {
      entry: ['release', { type: 'announce', params: { status: 'closed' } }, 'announceClosed'],
      always: 'closed',
    },
    dormant: {
      meta: { refuse: { open: 'session_exists', execute: 'session_not_ready' } },
      on: { wake: { target: 'live.restoring', actions: 'forgetDeaths' }, close: 'closing' },
    },
    failed: {
      entry: {
        type: 'announce',
        params: ({ context }) => ({ status: 'failed', reason: context.failure?.code ?? 'unknown' }),
      },
      meta: { refuse: { open: 'session_exists', execute: 'session_failed' } },
      on: { close: 'closing', restored: '.retryable' },
      initial: 'resting',
      states: {
        resting: { after: { retryPause: 'retryable' } },
        retryable: { on: { wake: { target: '#notebookSession.live.restoring', actions: 'forgetDeaths' } } },
      },
    },
  },
});

export type NotebookSessionSnapshot = SnapshotFrom<typeof notebookSessionMachine>;

/** The status that the API shows. A dormant session shows as ready: its next use wakes it. */
export function sessionStatus(snapshot: Pick<NotebookSessionSnapshot, 'matches'>): SessionStatus {
  if (snapshot.matches('closed') || snapshot.matches('closing')) return 'closed';
  if (snapshot.matches('failed')) return 'failed';
  if (snapshot.matches('dormant')) return 'ready';
  for (const status of ['starting', 'restoring', 'ready', 'busy', 'closing'] as const) {
    if (snapshot.matches({ live: status })) return status;
  }
  throw new Error('A notebook session is in a state without a status.');
}
