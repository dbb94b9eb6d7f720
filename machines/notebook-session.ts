/**
 * One open notebook: owns one kernel, does one piece of work at a time, announces each change.
 *
 *   closed ─open─► live.starting ─kernel.ready─► live.ready ⇄ live.busy.running ─cancel, deadline─► cancelling ─3 s─► killing
 *     ▲               │ deadline                  │    ▲ kernel.ready
 *     │               ▼                           │    └── live.restoring ◄─kernel.exited─ any of live
 *     │            failed.resting ─► .retryable   └─suspend─► dormant          │ third early death, deadline
 *     │               └─wake─► live.restoring ◄──wake── dormant                ▼
 *   closed ◄─ live.closing ◄─close─ live      closed ◄─close─ failed, dormant  failed
 *                                             live.ready ─hibernate─► dormant
 *
 * Its rules, each with the test that holds it. docs/decisions/kernel.md lists what it assumes of a kernel (K1 to K14).
 *
 * S1 A kernel exists only inside `live`, and exactly one.
 *    — "random sequences of events keep kernels, work and announcements consistent"
 * S2 `work` is set exactly in `live.busy`.
 *    — "a session takes work only while it has no work, and is busy only with work"
 * S3 Accepted work is ended exactly once, through `endWork`; only a crash of the server leaves it open.
 *    — "every way out of busy ends the work exactly once, with the right result"
 * S4 Closed stays closed until `open`: a session's id is its notebook's, so it can be opened again.
 *    — "a session in closed takes, refuses or ignores every event as the row of the table says"
 * S5 A kernel that is being killed gets no more work: `killing` is left by its exit, never by its last message.
 *    — "a kernel that answers after the order to kill it gets no more work"
 * S6 Once `closing`, a session closes, even if its kernel fails to end.
 *    — "a session that gets `close` closes even when stopping its kernel fails"
 * S7 `starting` and `restoring` are `forking`, or `installing` packages, which may take longer than a fork.
 *    — "installDeadline leads from live.starting.installing to failed.resting after 1200000 ms and not before"
 * S8 Work with a deadline that has passed is stopped as a cancel stops it, and then has failed instead of being cancelled.
 *    — "work that reaches its deadline is interrupted like cancelled work, but counts as failed"
 *
 * Stored: value and context, but not `busy`: a session that is busy stays stored as the `ready` that it came from. A stored `live`
 * claims a kernel that died with the server: `restored` starts another.
 */

import type { SnapshotFrom } from 'xstate';
import { invariant } from '#src/base/errors/invariant.ts';
import type { SessionStatus } from '#src/contract/wire/session.ts';
import {
  BROKEN,
  CLOSE_WORK,
  concludeStopped,
  concludeWork,
  endOfStopped,
  FAIL_WORK,
  KILLED,
  NOTE_CLOSER,
  NOTE_FAILURE,
  NOTE_KERNEL_END,
  notebookSessionSetup,
  STUCK,
  UNTIL_READY,
} from './notebook-session-setup.ts';

export type {
  DriverCommand,
  KernelEnd,
  Lifetime,
  NotebookSessionEvent,
  NotebookSessionNotice,
  Opener,
  SessionContext,
  Work,
  WorkEnd,
} from './notebook-session-setup.ts';

export { SLEEP_REASONS } from './notebook-session-setup.ts';

export const notebookSessionMachine = notebookSessionSetup.createMachine({
  id: 'notebookSession',
  context: ({ input }) => ({
    ...input,
    environmentId: null,
    mode: 'edit',
    arguments: [],
    openedAt: null,
    openedBy: null,
    lifetime: { ttlS: null, idleTimeoutS: null },
    metadata: null,
    work: null,
    phases: {},
    failure: null,
    kernelEnd: null,
    earlyDeaths: 0,
    closedBy: null,
  }),
  meta: {
    refuse: {
      open: 'session_exists',
      shareEnvironment: 'environment_differs',
      bindAgent: 'notebook_not_ready',
      changeSaved: 'session_open',
    },
  },
  on: {
    shareEnvironment: {
      guard: { type: 'isInEnvironment', params: ({ event }) => event.environmentId },
      actions: 'permit',
    },
    interrupt: { actions: 'permit' },
  },
  initial: 'closed',
  states: {
    closed: {
      meta: {
        refuse: {
          execute: 'session_closed',
          interrupt: 'session_closed',
          close: 'session_closed',
          wake: 'session_closed',
          hibernate: 'session_closed',
          shareEnvironment: 'notebook_not_ready',
        },
      },
      on: {
        open: { target: 'live', actions: { type: 'begin', params: ({ event }) => event } },
        shareEnvironment: {},
        interrupt: {},
        changeSaved: { actions: 'permit' },
      },
    },
    live: {
      tags: 'resident',
      meta: { refuse: { execute: 'session_not_ready', hibernate: 'session_not_ready' } },
      invoke: {
        id: 'kernel',
        src: 'kernel',
        input: ({ context }) => context,
        onError: [
          { guard: 'isClosing', target: 'closing' },
          {
            target: 'failed',
            actions: [
              ...concludeWork({ status: 'failed', failure: BROKEN }),
              { type: 'noteFailure', params: BROKEN },
            ],
          },
        ],
      },
      on: {
        close: { target: '.closing', actions: NOTE_CLOSER },
        restored: {
          target: '.restoring',
          reenter: true,
          actions: ['dropWork', 'forgetDeaths', { type: 'noteKernelEnd', params: 'server_stopped' }],
        },
        suspend: {
          target: 'dormant',
          actions: [
            ...FAIL_WORK,
            NOTE_KERNEL_END,
            {
              // Tells requests that wait for the kernel that no kernel will start.
              type: 'announce',
              params: ({ event }) => ({ status: 'ready', reason: event.failure.code }),
            },
          ],
        },
        'kernel.exited': [
          {
            // The transition is in `live` and not in `killing`, because only a transition of `live` itself
            // starts another kernel.
            guard: 'isKilled',
            target: '.restoring',
            reenter: true,
            actions: [
              ...concludeStopped(KILLED),
              'forgetDeaths',
              { type: 'noteFailure', params: KILLED },
              { type: 'noteKernelEnd', params: KILLED.code },
            ],
          },
          {
            guard: { type: 'mayRestore', params: ({ event }) => event },
            target: '.restoring',
            reenter: true,
            actions: [
              ...FAIL_WORK,
              { type: 'noteDeath', params: ({ event }) => event },
              NOTE_FAILURE,
              NOTE_KERNEL_END,
            ],
          },
          { target: 'failed', actions: [...FAIL_WORK, NOTE_FAILURE, NOTE_KERNEL_END] },
        ],
      },
      initial: 'starting',
      states: {
        starting: { ...UNTIL_READY, entry: { type: 'announce', params: { status: 'starting' } } },
        restoring: {
          ...UNTIL_READY,
          entry: {
            type: 'announce',
            params: ({ context }) => ({ status: 'restoring', reason: context.failure?.code ?? 'resumed' }),
          },
        },
        ready: {
          entry: { type: 'announce', params: { status: 'ready' } },
          meta: { refuse: { execute: 'session_not_editable' } },
          on: {
            bindAgent: { actions: 'permit' },
            hibernate: {
              target: '#notebookSession.dormant',
              actions: [
                { type: 'noteKernelEnd', params: ({ event }) => event.reason },
                { type: 'announce', params: ({ event }) => ({ status: 'ready', reason: event.reason }) },
              ],
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
          tags: ['passing', 'unstored'],
          entry: { type: 'announce', params: { status: 'busy' } },
          meta: { refuse: { execute: 'session_busy', hibernate: 'session_busy' } },
          on: {
            bindAgent: { actions: 'permit' },
            'kernel.done': {
              guard: { type: 'isCurrent', params: ({ event }) => event.workId },
              target: 'ready',
              actions: [
                { type: 'endWork', params: ({ context, event }) => endOfStopped(context.work, event) },
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
              after: {
                workDeadline: { guard: 'hasDeadline', target: 'cancelling', actions: 'noteOutOfTime' },
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
                  actions: [...concludeStopped(STUCK), { type: 'noteFailure', params: STUCK }],
                },
              },
            },
          },
        },
        closing: {
          entry: [
            { type: 'announce', params: { status: 'closing' } },
            'closeBound',
            ...CLOSE_WORK,
            { type: 'tellKernel', params: { type: 'stop' } },
          ],
          meta: {
            refuse: {
              execute: 'session_closed',
              interrupt: 'session_closed',
              wake: 'session_closed',
              hibernate: 'session_closed',
              shareEnvironment: 'notebook_not_ready',
            },
          },
          on: {
            close: 'closing',
            shareEnvironment: {},
            interrupt: {},
            restored: '#notebookSession.closing',
            suspend: '#notebookSession.closing',
            'kernel.exited': '#notebookSession.closing',
          },
          after: { closeDeadline: '#notebookSession.closing' },
        },
      },
    },
    /** Left at once, because the kernel is gone and the session releases its resources. */
    closing: {
      entry: ['closeBound', 'release', { type: 'announce', params: { status: 'closed' } }, 'announceClosed'],
      always: 'closed',
    },
    dormant: {
      meta: { refuse: { execute: 'session_not_ready' } },
      on: {
        wake: { target: 'live.restoring', actions: 'forgetDeaths' },
        hibernate: { actions: 'permit' },
        close: { target: 'closing', actions: NOTE_CLOSER },
      },
    },
    failed: {
      entry: {
        type: 'announce',
        params: ({ context }) => ({ status: 'failed', reason: context.failure?.code ?? 'unknown' }),
      },
      meta: {
        refuse: { execute: 'session_failed', wake: 'session_failed', hibernate: 'session_failed' },
      },
      on: { close: { target: 'closing', actions: NOTE_CLOSER }, restored: '.retryable' },
      initial: 'resting',
      states: {
        resting: { after: { retryPause: 'retryable' } },
        retryable: { on: { wake: { target: '#notebookSession.live.restoring', actions: 'forgetDeaths' } } },
      },
    },
  },
});

export type NotebookSessionSnapshot = SnapshotFrom<typeof notebookSessionMachine>;

/**
 * Returns whether a use has woken the session and it is about to be ready, so that requests that
 * need its kernel wait. Returns false for a session that is being opened, or whose kernel has died.
 */
export function isWaking(snapshot: Pick<NotebookSessionSnapshot, 'matches' | 'context'>): boolean {
  return snapshot.matches({ live: 'restoring' }) && snapshot.context.failure === null;
}

/** Returns whether the session is about to have a kernel that takes work, but has none yet. */
export function isStarting(snapshot: Pick<NotebookSessionSnapshot, 'matches'>): boolean {
  return snapshot.matches({ live: 'starting' }) || snapshot.matches({ live: 'restoring' });
}

/** The status that the API shows. A dormant session shows as ready: its next use wakes it. */
export function sessionStatus(snapshot: Pick<NotebookSessionSnapshot, 'matches'>): SessionStatus {
  if (snapshot.matches('closed') || snapshot.matches('closing')) return 'closed';
  if (snapshot.matches('failed')) return 'failed';
  if (snapshot.matches('dormant')) return 'ready';
  for (const status of ['starting', 'restoring', 'ready', 'busy', 'closing'] as const) {
    if (snapshot.matches({ live: status })) return status;
  }
  invariant(false, 'Each state of a notebook session has a status.');
}
