/**
 * One agent conversation that is open: answers one prompt at a time, step by step, and announces each change.
 *
 *   closed ─open─► open.ready ─prompt─► open.busy.thinking ─step.done, calls─► acting.running ─tools.done─► thinking
 *     ▲                ▲                  │  ▲     │                             │ cancel
 *     │                │    step.failed ──┘  └─ waiting (retryPause)             ▼
 *     │                └── step.done without calls, a limit, a failure,       acting.cancelling ─tools.done, cancelGrace─┐
 *     │                    a cancel: the run is ended ◄─────────────────────────────────────────────────────────────────┘
 *   closed ◄─ closing ◄─close─ open
 *
 * Its rules, each with the test that holds it:
 *
 * A1 `run` is set exactly in `open.busy`.
 *    — "an agent session is resident and has a run exactly while it is busy"
 * A2 An accepted run is ended exactly once, through `endRun`; only a crash of the server leaves it open.
 *    — "a prompt with tools alternates between thinking and acting, and its run is ended once"
 * A3 The model is asked only inside `thinking`, tools run only inside `acting`: leaving the state aborts them.
 *    — "tools that do not stop are abandoned after the grace period"
 * A4 A prompt is never replayed: one that a dead server left is forgotten, its run stays stale.
 *    — "an agent session stored in open.busy.thinking comes back idle, and its prompt is neither ended nor carried out again"
 * A5 A prompt whose deadline has passed is stopped as a cancel stops it, and has failed.
 *    — "a prompt that reaches the deadline of its request while tools run first stops them, and a later cancel changes nothing"
 * A6 Closed stays closed until `open`: a conversation's id is saved, so it can be opened again.
 *    — "an agent session in closed takes, refuses or ignores every event as the row of the table says"
 *
 * Stored: value and context. A stored `busy` claims work that died with the server: `restored` makes it `ready`.
 */
import { raise, type SnapshotFrom } from 'xstate';
import type { AgentStatus } from '#src/contract/wire/agent.ts';
import {
  AGENT_BROKEN,
  type AgentSessionContext,
  agentSessionSetup,
  CANCELLED,
  COMPLETED,
  EXPIRED,
  OUT_OF_STEPS,
  OUT_OF_TOKENS,
  OVER_TIME_LIMIT,
  type RunEnding,
} from './agent-session-setup.ts';
import { sessionClosed } from './any-session.ts';

export type {
  AgentSessionContext,
  AgentSessionEvent,
  AgentSessionNotice,
  PromptBudget,
  RunEnding,
} from './agent-session-setup.ts';

/** Notes that the user named in the event closes the session. */
const NOTE_CLOSER = {
  type: 'noteCloser',
  params: ({ event }: { readonly event: { readonly by?: string | undefined } }) => event.by,
} as const;

/** Leaves `busy`: one commit ends the run and stores the session's state. */
const over = (ending: RunEnding) => ({
  target: '#agentSession.open.ready' as const,
  actions: [{ type: 'endRun' as const, params: ending }, 'dropRun' as const],
});

/** Leaves `cancelling`, after a cancel or the deadline of the prompt has stopped the tools. */
const STOPPED = {
  target: '#agentSession.open.ready',
  actions: [
    {
      type: 'endRun',
      params: ({ context: { run } }: { readonly context: AgentSessionContext }): RunEnding =>
        run?.isOutOfTime === true ? EXPIRED : CANCELLED,
    },
    'dropRun',
  ],
} as const;

export const agentSessionMachine = agentSessionSetup.createMachine({
  id: 'agentSession',
  context: ({ input }) => ({
    ...input,
    environmentId: null,
    notebookSessionId: null,
    openedAt: null,
    run: null,
    closedBy: null,
  }),
  initial: 'closed',
  on: { delete: { actions: 'permit' } },
  states: {
    closed: {
      meta: { refuse: { prompt: 'session_closed', close: 'session_closed' } },
      on: { open: { target: 'open', actions: { type: 'begin', params: ({ event }) => event } } },
    },
    open: {
      meta: { refuse: { open: 'session_exists' } },
      on: { close: { target: 'closing', actions: NOTE_CLOSER } },
      initial: 'ready',
      states: {
        ready: {
          entry: { type: 'announce', params: { status: 'ready' } },
          on: {
            prompt: { target: 'busy', actions: { type: 'takeRun', params: ({ event }) => event } },
          },
        },
        busy: {
          tags: 'resident',
          entry: { type: 'announce', params: { status: 'busy' } },
          meta: { refuse: { prompt: 'session_busy', delete: 'session_busy' } },
          on: {
            delete: {},
            close: {
              target: '#agentSession.closing',
              actions: [
                NOTE_CLOSER,
                {
                  type: 'endRun',
                  params: ({ event }): RunEnding => ({
                    status: 'cancelled',
                    failure: sessionClosed({ closedBy: event.by ?? null }),
                  }),
                },
                'dropRun',
              ],
            },
            suspend: {
              target: 'ready',
              actions: [
                { type: 'endRun', params: ({ event }) => ({ status: 'failed', failure: event.failure }) },
                'dropRun',
              ],
            },
            restored: { target: 'ready', actions: 'dropRun' },
            cancel: {
              guard: { type: 'isCurrent', params: ({ event }) => event.runId },
              ...over(CANCELLED),
            },
            expire: over(EXPIRED),
          },
          after: {
            runDeadline: over(OVER_TIME_LIMIT),
            promptDeadline: { guard: 'hasDeadline', actions: raise({ type: 'expire' }) },
          },
          initial: 'thinking',
          states: {
            thinking: {
              invoke: {
                src: 'think',
                input: ({ context }) => context,
                onError: over(AGENT_BROKEN),
              },
              on: {
                'step.done': [
                  { guard: { type: 'isAnswer', params: ({ event }) => event.calls }, ...over(COMPLETED) },
                  { guard: 'isOutOfSteps', ...over(OUT_OF_STEPS) },
                  {
                    guard: { type: 'isOutOfTokens', params: ({ event }) => event.tokens },
                    ...over(OUT_OF_TOKENS),
                  },
                  {
                    target: 'acting',
                    actions: { type: 'noteStep', params: ({ event }) => event.tokens },
                  },
                ],
                'step.failed': [
                  {
                    guard: { type: 'lacksTokensToRetry', params: ({ event }) => event },
                    ...over(OUT_OF_TOKENS),
                  },
                  {
                    guard: { type: 'mayRetry', params: ({ event }) => event },
                    target: 'waiting',
                    actions: [
                      { type: 'noteFailure', params: ({ event }) => event },
                      {
                        type: 'announce',
                        params: ({ event }) => ({ status: 'busy', reason: event.failure.code }),
                      },
                    ],
                  },
                  {
                    target: '#agentSession.open.ready',
                    actions: [
                      {
                        type: 'endRun',
                        params: ({ event }) => ({ status: 'failed', failure: event.failure }),
                      },
                      'dropRun',
                    ],
                  },
                ],
              },
            },
            waiting: { after: { retryPause: 'thinking' } },
            acting: {
              invoke: {
                id: 'act',
                src: 'act',
                input: ({ context }) => context,
                onError: over(AGENT_BROKEN),
              },
              initial: 'running',
              states: {
                running: {
                  on: {
                    'tools.done': '#agentSession.open.busy.thinking',
                    cancel: {
                      guard: { type: 'isCurrent', params: ({ event }) => event.runId },
                      target: 'cancelling',
                    },
                    expire: { target: 'cancelling', actions: 'noteOutOfTime' },
                  },
                },
                cancelling: {
                  entry: 'stopTools',
                  on: { 'tools.done': STOPPED, cancel: {}, expire: {} },
                  after: { cancelGrace: STOPPED },
                },
              },
            },
          },
        },
      },
    },
    /** Left at once, because the session releases its resources. */
    closing: {
      entry: ['release', { type: 'announce', params: { status: 'closed' } }, 'announceClosed'],
      always: 'closed',
    },
  },
});

export type AgentSessionSnapshot = SnapshotFrom<typeof agentSessionMachine>;

/** The status that the API shows. */
export function agentStatus(snapshot: Pick<AgentSessionSnapshot, 'matches'>): AgentStatus {
  if (snapshot.matches({ open: 'busy' })) return 'busy';
  return snapshot.matches('open') ? 'ready' : 'closed';
}
