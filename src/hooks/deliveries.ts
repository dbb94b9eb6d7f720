/**
 * The deliveries of hooks: each is sent until it arrives or dies, one request at a time for each hook. An attempt is stored before its
 * request begins, and its end afterwards. So a delivery whose process dies in between is sent again, with the same id.
 */

import type { HookReason } from '#machines/hook.ts';
import { FairSemaphore } from '#src/base/async/fair-semaphore.ts';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { Role } from '#src/base/caller/role.ts';
import { faultPoint } from '#src/base/fault-points.ts';
import type { DeliveryId, UserId, WorkspaceId } from '#src/base/ids.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { Delivery } from '#src/contract/wire/hook.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { timedPlaceAt } from '#storage/lists/timed-places.ts';
import { type HookRecord, hookBooks, hookPlaces, hookQueue, queuePlaceOf } from '#storage/records/hooks.ts';
import { type HookAddress, type HookStates, hookIdOf, type StoredHook } from './hook-states.ts';
import type { Message, Sent } from './sender.ts';
import { signatureOf } from './signature.ts';

export interface DeliveryParts {
  /** Sends one message. */
  readonly send: (message: Message, signal: AbortSignal) => Promise<Sent>;
  /** Opens a secret by its name. */
  readonly openSecret: (workspaceId: string, name: string) => string;
  /** Returns the present role of a user in a workspace; undefined when the user is not a member. */
  readonly roleOf: (workspaceId: WorkspaceId, userId: UserId) => Role | undefined;
  /** Returns whether a role may have hooks. */
  readonly mayHaveHooks: (role: Role) => boolean;
}

/** How many requests a worker makes at once. A workspace gets a part of them, so that one with hanging receivers does not stop others. */
const PLACES = { width: 64, widthOfKey: 16, queueOfKey: 1000 };
/** The pause after the first attempt that has failed. Each further pause is up to three times as long. */
const FIRST_PAUSE_MS = 5000;
const PAUSE_FACTOR = 3;
const MAX_PAUSE_MS = 3 * 3_600_000;
/** After so many attempts, a delivery lets the ones after it pass. */
const ATTEMPTS_IN_ORDER = 4;
/** For how long a delivery is attempted. */
const MAX_AGE_MS = 24 * 3_600_000;

export class Deliveries implements Disposable {
  readonly #context: Pick<PlaneContext, 'store' | 'cluster' | 'log' | 'metrics'>;
  readonly #states: HookStates;
  readonly #parts: DeliveryParts;
  readonly #places = new FairSemaphore(PLACES);
  readonly #closing = new AbortController();

  constructor(
    context: Pick<PlaneContext, 'store' | 'cluster' | 'log' | 'metrics'>,
    states: HookStates,
    parts: DeliveryParts,
  ) {
    this.#context = context;
    this.#states = states;
    this.#parts = parts;
  }

  /** Takes the requests up again that dead processes have begun. Call it when slots have come to this worker. */
  recover(): void {
    const { store, cluster } = this.#context;
    if (store.isReadOnly) return;
    store.refreshShared();
    for (const { ids } of [...store.listAfter(hookPlaces, SYSTEM, [], [])]) {
      const { workspaceId, id } = timedPlaceAt(ids[1] ?? '');
      const hook = hookIdOf(workspaceId, id);
      if (this.#states.find(workspaceId, id) === undefined || !cluster.owns(workspaceId)) continue;
      this.#states.actors.restore(hook);
      store.write((tx) => this.#states.place(tx, hook));
    }
  }

  /** Does what a hook is due to do at `nowMs`: the next attempt, or the first delivery that waits. */
  attend(hook: HookAddress, nowMs: number): void {
    const { workspaceId, id } = hook;
    const stored = this.#states.find(workspaceId, id);
    const snapshot = this.#states.actors.restore(hook)?.snapshot;
    if (stored === undefined || snapshot === undefined) return;
    const { delivery } = snapshot.context;
    // A request of a dead process has become an attempt to repeat when its actor was restored.
    if (snapshot.matches('sending')) this.#states.tell(hook, { type: 'underWay', nowMs });
    else if (this.#isRefused(hook, stored)) return;
    else if (delivery !== null) this.#attempt(hook, delivery.id, nowMs);
    else this.#beginNext(hook, nowMs);
  }

  /** Pauses the hook when its owner has lost the right to have it. Returns whether it is refused. */
  #isRefused(hook: HookAddress, { record: { ownerId } }: StoredHook): boolean {
    const role = this.#parts.roleOf(hook.workspaceId, ownerId as UserId);
    if (role !== undefined && this.#parts.mayHaveHooks(role)) return false;
    const reason: HookReason =
      role === undefined
        ? {
            code: 'owner_left',
            message: `The owner of the hook, ${ownerId}, is no longer a member of the workspace.`,
          }
        : {
            code: 'role_too_low',
            message: `The owner of the hook, ${ownerId}, has the role ${role} and may not have hooks any more.`,
          };
    this.#states.tell(hook, { type: 'pause', reason });
    return true;
  }

  #beginNext(hook: HookAddress, nowMs: number): void {
    const { store } = this.#context;
    const { workspaceId, id } = hook;
    const waiting = this.#states.firstWaiting(store, workspaceId, id);
    if (waiting === undefined) {
      // A delivery may have been queued in a turn that is not committed yet. The clock looks again after the commit.
      if (this.#states.bookOf(workspaceId, id).pending === 0 || store.durable() === undefined)
        this.#states.tell(hook, { type: 'none' });
      return;
    }
    if (waiting.dueMs > nowMs) {
      this.#states.tell(hook, { type: 'queued', dueMs: waiting.dueMs });
      return;
    }
    store.write((tx) =>
      tx.remove(hookQueue, workspaceId, id, queuePlaceOf(waiting.dueMs, waiting.deliveryId)),
    );
    this.#attempt(hook, waiting.deliveryId, nowMs);
  }

  #attempt(hook: HookAddress, deliveryId: DeliveryId, nowMs: number): void {
    const { workspaceId, id } = hook;
    const delivery = this.#states.delivery(workspaceId, id, deliveryId);
    const isBegun =
      this.#states.tell(hook, { type: 'begin', deliveryId, nowMs }) ||
      this.#states.tell(hook, { type: 'retry', nowMs });
    if (!isBegun) return;
    if (delivery === undefined) {
      this.#conclude(hook, 'aside', '');
      return;
    }
    const attempt = {
      ...delivery,
      attempts: delivery.attempts + 1,
      lastAttemptAt: timestamp(nowMs),
      nextAttemptAt: null,
    };
    this.#context.store.write((tx) => this.#states.put(tx, workspaceId, attempt));
    faultPoint('hook.begun');
    unawaited(this.#carryOut(hook, attempt), 'deliveries: an attempt of a delivery');
  }

  async #carryOut(hook: HookAddress, delivery: Delivery): Promise<void> {
    const { signal } = this.#closing;
    try {
      // A receiver must not learn of an event that a crash could undo.
      await this.#context.store.durable();
      faultPoint('hook.sending');
      const sent = await this.#places.pass(
        hook.workspaceId,
        async () => {
          // The hook may have been deleted or changed, and its secrets removed, since the attempt began.
          const stored = this.#states.find(hook.workspaceId, hook.id);
          return stored && (await this.#parts.send(this.#messageOf(hook, stored, delivery), signal));
        },
        signal,
      );
      faultPoint('hook.answered');
      if (sent !== undefined && !signal.aborted) this.#end(hook, delivery, sent);
    } catch (error) {
      // While the server ends, the delivery stays as it is, and the next process sends it again.
      if (signal.aborted) return;
      this.#context.log.error({ err: error, hookId: hook.id }, 'a delivery of a hook failed');
      this.#end(hook, delivery, { status: null, response: null, failure: BROKEN });
    }
  }

  #messageOf({ workspaceId }: HookAddress, { record, definition }: StoredHook, delivery: Delivery): Message {
    const nowMs = Date.now();
    const timestampS = String(Math.floor(nowMs / 1000));
    const { id, payload: body } = delivery;
    const signature = validSecrets(record, nowMs)
      .map(({ name }) => signatureOf(this.#parts.openSecret(workspaceId, name), id, timestampS, body))
      .join(' ');
    return { workspaceId, url: definition.url, id, timestampS, signature, body };
  }

  #end(hook: HookAddress, { id, attempts }: Delivery, { status, response, failure }: Sent): void {
    const { store, metrics } = this.#context;
    if (failure !== null) metrics.hookFailures.of(failure.code).add();
    const delivery = this.#states.delivery(hook.workspaceId, hook.id, id);
    // A hook that was deleted loses its deliveries in later steps, so its last one may still be there.
    if (delivery === undefined || this.#states.find(hook.workspaceId, hook.id) === undefined) return;
    const nowMs = Date.now();
    const seen = { ...delivery, responseStatus: status, response, reason: failure };
    const over = { ...seen, finishedAt: timestamp(nowMs), nextAttemptAt: null };
    const end = (status: 'delivered' | 'dead') =>
      store.write((tx) => this.#states.end(tx, hook.workspaceId, { ...over, status }));
    const retryAtMs = nowMs + pauseAfter(attempts);
    if (failure === null) {
      end('delivered');
      this.#conclude(hook, 'delivered', '');
    } else if (failure.code === 'gone') {
      end('dead');
      this.#states.tell(hook, { type: 'pause', reason: failure });
      this.#conclude(hook, 'dead', failure.message);
    } else if (retryAtMs > Date.parse(delivery.queuedAt) + MAX_AGE_MS) {
      end('dead');
      this.#conclude(hook, 'dead', failure.message);
    } else {
      const again = { ...seen, nextAttemptAt: timestamp(retryAtMs) };
      store.write((tx) => this.#states.put(tx, hook.workspaceId, again));
      if (attempts < ATTEMPTS_IN_ORDER) this.#states.tell(hook, { type: 'failed', retryAtMs });
      else {
        store.write((tx) => tx.mark(hookQueue, hook.workspaceId, hook.id, queuePlaceOf(retryAtMs, id)));
        this.#conclude(hook, 'aside', failure.message);
      }
    }
    faultPoint('hook.sent');
  }

  /** Ends the delivery in progress, and turns to the next one that waits. */
  #conclude(hook: HookAddress, end: 'delivered' | 'dead' | 'aside', because: string): void {
    const { workspaceId, id } = hook;
    const book = this.#states.bookOf(workspaceId, id);
    const pending = end === 'aside' ? book.pending : book.pending - 1;
    this.#context.store.write((tx) => tx.put(hookBooks, { ...book, pending }, workspaceId, id));
    this.#states.tell(hook, { type: 'over', end, dueMs: pending > 0 ? Date.now() : null, because });
  }

  [Symbol.dispose](): void {
    this.#closing.abort();
  }
}

const BROKEN = {
  code: 'internal',
  message: 'The delivery failed because of a fault of the server.',
} as const;

/** Returns the secrets that sign at `nowMs`, newest first. */
export function validSecrets({ secrets }: HookRecord, nowMs: number): HookRecord['secrets'] {
  return secrets.filter(({ expiresAt }) => expiresAt === null || Date.parse(expiresAt) > nowMs);
}

/** Returns the pause after an attempt that has failed: half of it is random, so that many deliveries do not come at once. */
function pauseAfter(attempts: number): number {
  const longest = Math.min(FIRST_PAUSE_MS * PAUSE_FACTOR ** (attempts - 1), MAX_PAUSE_MS);
  return Math.round(longest * (0.5 + Math.random() / 2));
}
