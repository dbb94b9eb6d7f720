/**
 * One execution environment: a place for at most one notebook session and any number of agent sessions.
 *
 *   open.vacant ⇄ open.occupied        open, nothing attached ─close─► closed (final)
 *
 * Its rules, each with the test that holds it:
 *
 * E1 `notebookSessionId` is set exactly in `open.occupied`.
 *    — "a notebook is attached exactly while the environment is occupied"
 * E2 It closes only when nothing is attached.
 *    — "attaching an agent again has no effect, and an environment can close after its agent is detached"
 *
 * Stored: all of it. Nothing in it depends on the process, so a restored environment is unchanged.
 */
import { assign, type SnapshotFrom, setup } from 'xstate';
import type { Refusals } from '#src/base/errors/refusals.ts';
import type { EnvironmentId, SessionId, WorkspaceId } from '#src/base/ids.ts';

export interface EnvironmentInput {
  readonly workspaceId: WorkspaceId;
  readonly environmentId: EnvironmentId;
}

export interface EnvironmentContext extends EnvironmentInput {
  readonly notebookSessionId: SessionId | null;
  readonly agentSessionIds: readonly SessionId[];
}

export type EnvironmentEvent =
  | { type: 'attachNotebook'; sessionId: SessionId }
  | { type: 'detachNotebook'; sessionId: SessionId }
  | { type: 'attachAgent'; sessionId: SessionId }
  | { type: 'detachAgent'; sessionId: SessionId }
  | { type: 'close' };

export const environmentMachine = setup({
  types: {} as {
    input: EnvironmentInput;
    context: EnvironmentContext;
    events: EnvironmentEvent;
    meta: Refusals<EnvironmentEvent['type']>;
  },
  guards: {
    hasNoAgents: ({ context }) => context.agentSessionIds.length === 0,
    isAttached: ({ context }, sessionId: SessionId) => context.notebookSessionId === sessionId,
  },
  actions: {
    setNotebook: assign((_, sessionId: SessionId) => ({ notebookSessionId: sessionId })),
    clearNotebook: assign({ notebookSessionId: null }),
    addAgent: assign(({ context }, sessionId: SessionId) => ({
      agentSessionIds: [...context.agentSessionIds.filter((id) => id !== sessionId), sessionId],
    })),
    removeAgent: assign(({ context }, sessionId: SessionId) => ({
      agentSessionIds: context.agentSessionIds.filter((id) => id !== sessionId),
    })),
  },
}).createMachine({
  id: 'environment',
  context: ({ input }) => ({ ...input, notebookSessionId: null, agentSessionIds: [] }),
  initial: 'open',
  states: {
    open: {
      initial: 'vacant',
      meta: { refuse: { close: 'environment_in_use' } },
      on: {
        attachAgent: { actions: { type: 'addAgent', params: ({ event }) => event.sessionId } },
        detachAgent: { actions: { type: 'removeAgent', params: ({ event }) => event.sessionId } },
      },
      states: {
        vacant: {
          on: {
            attachNotebook: {
              target: 'occupied',
              actions: { type: 'setNotebook', params: ({ event }) => event.sessionId },
            },
            close: { guard: 'hasNoAgents', target: '#environment.closed' },
          },
        },
        occupied: {
          meta: { refuse: { attachNotebook: 'environment_occupied' } },
          on: {
            detachNotebook: {
              guard: { type: 'isAttached', params: ({ event }) => event.sessionId },
              target: 'vacant',
              actions: 'clearNotebook',
            },
          },
        },
      },
    },
    closed: {
      meta: {
        refuse: {
          attachNotebook: 'environment_closed',
          attachAgent: 'environment_closed',
          close: 'environment_closed',
        },
      },
    },
  },
});

export function environmentStatus(snapshot: SnapshotFrom<typeof environmentMachine>): 'open' | 'closed' {
  return snapshot.matches('closed') ? 'closed' : 'open';
}
