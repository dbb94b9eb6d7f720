/**
 * One hook, which tells another server of events: the delivery in progress, when the next attempt is due, and the reason why the hook
 * is paused.
 *
 *   idle ─queued─► due ─begin─► sending ─over─► due | idle | paused
 *     ▲             │             │  ▲
 *     └────none─────┘           failed │ retry
 *                                 ▼  │
 *   idle, due ─pause─► paused   backing-off ─pause─► paused ─resume─► backing-off | due | idle
 *
 * Its rules, each with the test that holds it:
 *
 * H1 A hook makes at most one request at a time.
 *    — "a hook begins a delivery only while it has none"
 * H2 A delivery that has failed is sent again before any other, until it is over.
 *    — "a delivery that has failed is the one that is sent next"
 * H3 Five deliveries in a row that have died pause the hook, and one that has arrived begins the count anew.
 *    — "five deliveries in a row that have died pause a hook, and one that has arrived between them does not"
 * H4 A hook that is paused while it sends finishes the request first, and sends nothing more.
 *    — "a hook that is paused while it sends is paused afterwards"
 * H5 A request that a dead process has begun is sent again.
 *    — "a hook that was sending when its process died sends again at once"
 *
 * Stored: all of it. A request belongs to its process.
 */
import { assign, type SnapshotFrom, setup } from 'xstate';
import { invariant } from '#src/base/errors/invariant.ts';
import type { DeliveryId, HookId, WorkspaceId } from '#src/base/ids.ts';

/** How many deliveries in a row that have died pause a hook. */
export const MAX_DEATHS = 5;
/** A request that has not ended after this time, in milliseconds, is looked for: the longest time that it may take, and a minute. */
const LOOK_AFTER_MS = 75_000;

/** Why a hook is paused. */
export interface HookReason {
  readonly code: string;
  readonly message: string;
}

/** The delivery in progress. Times are milliseconds since 1970. */
export interface CurrentDelivery {
  readonly id: DeliveryId;
  /** When the last attempt has begun. */
  readonly begunMs: number;
  /** When the next attempt begins; null while a request is under way. */
  readonly retryAtMs: number | null;
}

export interface HookInput {
  readonly workspaceId: WorkspaceId;
  readonly hookId: HookId;
  readonly isPaused: boolean;
}

export interface HookContext extends HookInput {
  readonly delivery: CurrentDelivery | null;
  /** When the first delivery that waits is due; null when none waits. */
  readonly dueMs: number | null;
  /** How many deliveries in a row have died. */
  readonly deaths: number;
  /** Why the hook has paused itself; null when a person has paused it, or it is not paused. */
  readonly reason: HookReason | null;
}

export type HookEvent =
  /** A delivery waits since `dueMs`. */
  | { type: 'queued'; dueMs: number }
  /** No delivery waits. */
  | { type: 'none' }
  | { type: 'begin'; deliveryId: DeliveryId; nowMs: number }
  /** The request of this process is still under way. */
  | { type: 'underWay'; nowMs: number }
  | { type: 'retry'; nowMs: number }
  /** The attempt has failed, and the next one begins at `retryAtMs`. */
  | { type: 'failed'; retryAtMs: number }
  /** The delivery has arrived, has died, or lets others pass. `dueMs` is null when no other waits. */
  | { type: 'over'; end: 'delivered' | 'dead' | 'aside'; dueMs: number | null; because: string }
  /** `reason` is null when a person pauses the hook. */
  | { type: 'pause'; reason: HookReason | null }
  | { type: 'resume'; dueMs: number | null; nowMs: number }
  /** The actor has come from the store into a new process. */
  | { type: 'restored' };

type Over = Extract<HookEvent, { type: 'over' }>;

export const hookMachine = setup({
  types: {} as {
    input: HookInput;
    context: HookContext;
    events: HookEvent;
    tags: 'resident';
  },
  guards: {
    isPaused: ({ context }) => context.isPaused,
    hasDelivery: ({ context }) => context.delivery !== null,
    hasQueue: ({ context }) => context.dueMs !== null,
  },
  actions: {
    noteQueue: assign((_, dueMs: number | null) => ({ dueMs })),
    begin: assign((_, { deliveryId, nowMs }: { deliveryId: DeliveryId; nowMs: number }) => ({
      delivery: { id: deliveryId, begunMs: nowMs, retryAtMs: null },
    })),
    noteAttempt: assign(({ context }, nowMs: number) => ({
      delivery: { ...current(context), begunMs: nowMs, retryAtMs: null },
    })),
    noteRetry: assign(({ context }, retryAtMs: number) => ({ delivery: { ...current(context), retryAtMs } })),
    noteLoss: assign(({ context }) => {
      const delivery = current(context);
      return { delivery: { ...delivery, retryAtMs: delivery.begunMs } };
    }),
    conclude: assign(({ context }, { end, dueMs, because }: Over) => {
      const deaths = end === 'dead' ? context.deaths + 1 : end === 'delivered' ? 0 : context.deaths;
      const after = { delivery: null, dueMs, deaths };
      return deaths < MAX_DEATHS || context.isPaused
        ? after
        : { ...after, isPaused: true, reason: pausedBy(because) };
    }),
    notePause: assign((_, reason: HookReason | null) => ({ isPaused: true, reason })),
    noteResumption: assign(({ context }, { dueMs, nowMs }: { dueMs: number | null; nowMs: number }) => ({
      isPaused: false,
      reason: null,
      deaths: 0,
      dueMs,
      delivery: context.delivery && { ...context.delivery, retryAtMs: context.delivery.retryAtMs && nowMs },
    })),
  },
}).createMachine({
  id: 'hook',
  context: ({ input }) => ({ ...input, delivery: null, dueMs: null, deaths: 0, reason: null }),
  initial: 'settling',
  states: {
    /** Left at once. */
    settling: {
      always: [
        { guard: 'isPaused', target: 'paused' },
        { guard: 'hasDelivery', target: 'backing-off' },
        { guard: 'hasQueue', target: 'due' },
        { target: 'idle' },
      ],
    },
    idle: {
      on: {
        queued: { target: 'due', actions: { type: 'noteQueue', params: ({ event }) => event.dueMs } },
        pause: { target: 'paused', actions: { type: 'notePause', params: ({ event }) => event.reason } },
      },
    },
    due: {
      on: {
        queued: { actions: { type: 'noteQueue', params: ({ event }) => event.dueMs } },
        none: { target: 'idle', actions: { type: 'noteQueue', params: null } },
        begin: { target: 'sending', actions: { type: 'begin', params: ({ event }) => event } },
        pause: { target: 'paused', actions: { type: 'notePause', params: ({ event }) => event.reason } },
      },
    },
    sending: {
      tags: 'resident',
      on: {
        underWay: { actions: { type: 'noteAttempt', params: ({ event }) => event.nowMs } },
        failed: {
          target: 'settling',
          actions: { type: 'noteRetry', params: ({ event }) => event.retryAtMs },
        },
        over: { target: 'settling', actions: { type: 'conclude', params: ({ event }) => event } },
        pause: { actions: { type: 'notePause', params: ({ event }) => event.reason } },
        resume: { guard: 'isPaused', actions: { type: 'noteResumption', params: ({ event }) => event } },
        restored: { target: 'settling', actions: 'noteLoss' },
      },
    },
    'backing-off': {
      on: {
        retry: { target: 'sending', actions: { type: 'noteAttempt', params: ({ event }) => event.nowMs } },
        pause: { target: 'paused', actions: { type: 'notePause', params: ({ event }) => event.reason } },
      },
    },
    paused: {
      on: {
        resume: { target: 'settling', actions: { type: 'noteResumption', params: ({ event }) => event } },
      },
    },
  },
});

/** The states of a hook as the API names them. */
export type HookStatus = 'idle' | 'due' | 'sending' | 'backing-off' | 'paused';

/** Returns the status that the API shows. */
export function hookStatus(snapshot: Pick<SnapshotFrom<typeof hookMachine>, 'matches'>): HookStatus {
  for (const status of ['idle', 'due', 'sending', 'backing-off', 'paused'] as const)
    if (snapshot.matches(status)) return status;
  invariant(false, 'Each state of a hook has a status.');
}

/** Returns when the hook needs attention next, in milliseconds since 1970; null when nothing will happen by itself. */
export function hookAttentionMs({ delivery, dueMs, isPaused }: HookContext): number | null {
  if (delivery !== null && delivery.retryAtMs === null) return delivery.begunMs + LOOK_AFTER_MS;
  if (isPaused) return null;
  return delivery === null ? dueMs : delivery.retryAtMs;
}

function current({ delivery, hookId }: HookContext): CurrentDelivery {
  invariant(delivery !== null, 'A hook that sends has a delivery.', hookId);
  return delivery;
}

function pausedBy(because: string): HookReason {
  return {
    code: 'deliveries_died',
    message: `${MAX_DEATHS} deliveries in a row have died. The last failure: ${because}`,
  };
}
