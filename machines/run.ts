/**
 * One run: an execution of cells or an agent prompt, from its acceptance to its single terminal status.
 *
 *   running ─cancel─► cancelling         running, cancelling ─finish─► completed | failed | cancelled (final)
 *      └──────restored──────┴─► stale ─cancel─► cancelled
 *
 * Its rules, each with the test that holds it:
 *
 * R1 Exactly one terminal status is announced.
 *    — "a run announces its beginning and one end, and later events change nothing"
 * R2 `cancel` is accepted, again and again, until then.
 *    — "cancelling an active run stops its work, and can be repeated until the run has ended"
 * R3 A run that a dead server left behind is `stale`: it still reads as running, nothing will finish it but a cancel.
 *    — "only a cancel ends a run that a dead server has left running"
 * R4 Only a run that has ended can be deleted.
 *    — "a run in running.active takes, refuses or ignores every event as the row of the table says"
 *
 * Stored: in the record of the run, whose status says its state. After a restart a run that was `running` is `stale`, whether it
 * was `active` or `cancelling`.
 */
import { emit, setup } from 'xstate';
import type { Failure } from '#src/base/errors/errors.ts';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/base/ids.ts';
import type { RunKind, RunStatus, TerminalStatus } from '#src/contract/wire/run.ts';

/** All ways in which a run ends. The compiler rejects the list when an ending is missing. */
const ENDS: readonly TerminalStatus[] = Object.values({
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
} satisfies { [Status in TerminalStatus]: Status });

/** All statuses of a run. */
export const RUN_STATUSES: readonly RunStatus[] = ['running', ...ENDS];

export interface RunInput {
  readonly workspaceId: WorkspaceId;
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly kind: RunKind;
}

export type RunEvent =
  | { type: 'cancel' }
  | { type: 'finish'; status: TerminalStatus; error: Failure | null }
  | { type: 'restored' }
  /** Asks whether the run may be deleted; changes nothing. */
  | { type: 'delete' };

export interface RunNotice {
  readonly type: 'run.status';
  readonly runId: RunId;
  readonly sessionId: SessionId;
  readonly kind: RunKind;
  readonly status: RunStatus;
  readonly error: Failure | null;
}

export const runMachine = setup({
  types: {} as {
    input: RunInput;
    context: RunInput;
    events: RunEvent;
    emitted: RunNotice;
    meta: Refusals<RunEvent['type']>;
    /** `unstored`: a restart treats this state like the state before it. */
    tags: 'resident' | 'unstored';
  },
  guards: {
    hasStatus: (_, params: { is: TerminalStatus; status: TerminalStatus }) => params.is === params.status,
  },
  actions: {
    permit: () => undefined,
    announce: emit(({ context }, params: { status: RunStatus; error: Failure | null }) => ({
      type: 'run.status' as const,
      runId: context.runId,
      sessionId: context.sessionId,
      kind: context.kind,
      ...params,
    })),
  },
}).createMachine({
  id: 'run',
  context: ({ input }) => input,
  initial: 'running',
  on: { delete: { actions: 'permit' } },
  states: {
    running: {
      initial: 'active',
      meta: { refuse: { delete: 'run_in_progress' } },
      on: {
        delete: {},
        finish: ENDS.map((is) => ({
          guard: { type: 'hasStatus' as const, params: ({ event }) => ({ is, status: event.status }) },
          target: is,
          actions: {
            type: 'announce' as const,
            params: ({ event }) => ({ status: event.status, error: event.error }),
          },
        })),
        restored: '.stale',
      },
      states: {
        active: {
          tags: 'resident',
          entry: { type: 'announce', params: { status: 'running', error: null } },
          on: { cancel: 'cancelling' },
        },
        // The target is the state itself, because a transition without a target would look like a refusal.
        cancelling: { tags: ['resident', 'unstored'], on: { cancel: 'cancelling' } },
        stale: {
          on: {
            finish: {},
            cancel: {
              target: '#run.cancelled',
              actions: { type: 'announce', params: { status: 'cancelled', error: null } },
            },
          },
        },
      },
    },
    completed: { type: 'final', meta: { refuse: { cancel: 'run_finished' } } },
    failed: { type: 'final', meta: { refuse: { cancel: 'run_finished' } } },
    cancelled: { type: 'final', meta: { refuse: { cancel: 'run_finished' } } },
  },
});
