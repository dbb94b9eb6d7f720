/** Creates, reads, lists, changes, tests and deletes hooks, and lists and replays their deliveries, for the API. */

import { hookStatus } from '#machines/hook.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { refuseOverQuota } from '#src/base/errors/quota.ts';
import { type HookId, isIdOf, newId, type WorkspaceId } from '#src/base/ids.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { parseHost } from '#src/base/net/ip-address.ts';
import { isSameInstant, timestamp, timestampAfter } from '#src/base/time/clock.ts';
import type { CreatedHook, Delivery, Hook, HookChange, NewHook } from '#src/contract/wire/hook.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { checkCursor, listingOf, type PageRequest, pageOf } from '#storage/lists/listing.ts';
import type { Listing } from '#storage/lists/page-builder.ts';
import {
  deliveryRecords,
  type HookRecord,
  type HookSecret,
  hookCounts,
  hookQueue,
  hookRecords,
} from '#storage/records/hooks.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import type { Transaction } from '#storage/transaction.ts';
import { validSecrets } from './deliveries.ts';
import {
  type Definition,
  definitionIn,
  deliveryIn,
  type HookStates,
  hookIdOf,
  type StoredDelivery,
  type StoredHook,
  shownDelivery,
} from './hook-states.ts';
import type { Outbox } from './outbox.ts';
import { newHookSecret } from './signature.ts';

/** Seals the secrets of hooks, under names that are unique in a workspace. */
export interface HookVault {
  seal(tx: Transaction, workspaceId: string, name: string, secret: string): void;
  remove(tx: Transaction, workspaceId: string, name: string): void;
}

/** Returns whether the caller may know that there is this conversation. */
export type MayKnow = (caller: Principal, agentSessionId: string) => boolean;

/** The most hooks of a workspace. */
const MAX_HOOKS = 100;
/** How long the secret before a rotation signs, too. */
const OVERLAP_MS = 24 * 3_600_000;
/** The most records of deliveries that one commit of a deletion removes. */
const MAX_REMOVED = 200;
/** The kind of the removals of hooks. */
const HOOK = 'hook';

export class Hooks {
  readonly #context: PlaneContext;
  readonly #states: HookStates;
  readonly #outbox: Outbox;
  readonly #vault: HookVault;
  readonly #mayKnow: MayKnow;

  constructor(context: PlaneContext, states: HookStates, outbox: Outbox, vault: HookVault, mayKnow: MayKnow) {
    this.#context = context;
    this.#states = states;
    this.#outbox = outbox;
    this.#vault = vault;
    this.#mayKnow = mayKnow;
    context.removals.define(HOOK, (workspaceId, hookId) => this.#removeSome(workspaceId, hookId));
  }

  /** Creates a hook whose owner is the caller. Throws `not_found`, `invalid_request` for its URL, and `quota_exceeded`. */
  create({ workspaceId, userId }: Principal, asked: NewHook): CreatedHook {
    const { store } = this.#context;
    checkUrl(asked.url);
    if (!workspaceExists(store, workspaceId)) throw notFound();
    const count = store.get(hookCounts, workspaceId) ?? 0;
    refuseOverQuota({ what: 'hooks' }, MAX_HOOKS, () => count);
    const id = newId<HookId>('hook');
    const now = timestamp();
    const { url, events, filter = {}, name = null, paused: isPaused = false } = asked;
    const secret = newHookSecret();
    const sealed = newSecretName(id, now);
    this.#states.actors.spawn({ workspaceId, id }, { workspaceId, hookId: id, isPaused });
    store.write((tx) => {
      this.#vault.seal(tx, workspaceId, sealed, secret);
      const record: HookRecord = {
        ownerId: userId,
        createdAt: now,
        updatedAt: now,
        secrets: [{ name: sealed, expiresAt: null }],
        definition: encoded({ url, events, filter: shownFilter(filter), name }),
      };
      tx.put(hookRecords, record, workspaceId, id);
      tx.put(hookCounts, count + 1, workspaceId);
      this.#states.place(tx, { workspaceId, id });
    });
    this.#states.noteWanted(workspaceId);
    return { ...this.read(workspaceId, id), secret };
  }

  /** Throws `not_found`. */
  read(workspaceId: WorkspaceId, hookId: string): Hook {
    return this.#shown(workspaceId, hookId, this.#states.read(workspaceId, hookId));
  }

  /** Returns a page of hooks, in the order of their creation. Throws `invalid_cursor`. */
  list(workspaceId: WorkspaceId, page: PageRequest): Listing<Hook> {
    checkCursor(page.after, (text) => isIdOf('hook', text));
    return listingOf(
      this.#context.store.list(hookRecords, workspaceId, [], pageOf(page)),
      page.limit,
      (record, id) => this.#shown(workspaceId, id, { record, definition: definitionIn(record) }),
    );
  }

  /** Changes the given members. Throws `not_found`, `stale_update`, `role_too_low` and `invalid_request`. */
  change(caller: Principal, hookId: string, change: HookChange): Hook {
    const { workspaceId } = caller;
    const { store } = this.#context;
    const { expectedUpdatedAt, paused, ...members } = change;
    const { record, definition } = this.#controlled(caller, hookId);
    if (!isSameInstant(record.updatedAt, expectedUpdatedAt)) throw staleUpdate(record.updatedAt);
    if (paused === undefined && Object.keys(members).length === 0) throw nothingToChange();
    if (members.url !== undefined) checkUrl(members.url);
    const changed = {
      ...record,
      updatedAt: timestampAfter(record.updatedAt),
      definition: encoded({
        ...definition,
        ...members,
        filter: shownFilter(members.filter ?? definition.filter),
      }),
    };
    const hook = hookIdOf(workspaceId, hookId);
    store.write((tx) => tx.put(hookRecords, changed, workspaceId, hookId));
    if (paused === true) this.#states.tell(hook, { type: 'pause', reason: null });
    if (paused === false) this.#resume(hookId, workspaceId);
    this.#states.noteWanted(workspaceId);
    return this.read(workspaceId, hookId);
  }

  #resume(hookId: string, workspaceId: WorkspaceId): void {
    const nowMs = Date.now();
    const dueMs = this.#states.bookOf(workspaceId, hookId).pending > 0 ? nowMs : null;
    this.#states.tell(hookIdOf(workspaceId, hookId), { type: 'resume', dueMs, nowMs });
  }

  /** Gives a hook a new secret. The one before signs, too, for a day. Throws `not_found` and `role_too_low`. */
  rotate(caller: Principal, hookId: string): CreatedHook {
    const { workspaceId } = caller;
    const { record } = this.#controlled(caller, hookId);
    const now = timestampAfter(record.updatedAt);
    const secret = newHookSecret();
    const name = newSecretName(hookId, now);
    const [newest, ...older] = record.secrets;
    const kept: HookSecret[] =
      newest === undefined ? [] : [{ ...newest, expiresAt: timestamp(Date.now() + OVERLAP_MS) }];
    this.#context.store.write((tx) => {
      for (const old of older) this.#vault.remove(tx, workspaceId, old.name);
      this.#vault.seal(tx, workspaceId, name, secret);
      const secrets = [{ name, expiresAt: null }, ...kept];
      tx.put(hookRecords, { ...record, updatedAt: now, secrets }, workspaceId, hookId);
    });
    return { ...this.read(workspaceId, hookId), secret };
  }

  /** Deletes a hook with its deliveries and secrets. A request that is under way ends by itself. Throws `not_found`, `role_too_low`. */
  delete(caller: Principal, hookId: string): void {
    const { store, removals } = this.#context;
    const { workspaceId } = caller;
    const { record } = this.#controlled(caller, hookId);
    const count = store.get(hookCounts, workspaceId) ?? 1;
    store.write((tx) => {
      this.#states.erase(tx, hookIdOf(workspaceId, hookId));
      for (const { name } of record.secrets) this.#vault.remove(tx, workspaceId, name);
      tx.put(hookCounts, count - 1, workspaceId);
      removals.add(tx, { kind: HOOK, workspaceId, home: undefined, id: hookId });
    });
    this.#states.noteWanted(workspaceId);
  }

  /** Queues a delivery that tests the receiver. Throws `not_found`, `role_too_low` and `hook_paused`. */
  test(caller: Principal, hookId: string): Delivery {
    this.#sending(caller, hookId);
    return shownDelivery(this.#outbox.test(caller.workspaceId, hookId));
  }

  /**
   * Returns a page of the deliveries of a hook, oldest first unless the order says otherwise, without those that tell of a
   * conversation that the caller may not know. Throws `not_found`, `invalid_cursor`.
   */
  deliveries(caller: Principal, hookId: string, page: PageRequest): Listing<Delivery> {
    const { workspaceId } = caller;
    checkCursor(page.after, (text) => isIdOf('delivery', text));
    const { ownerId } = this.#states.read(workspaceId, hookId).record;
    const { store } = this.#context;
    const isKnown = ({ agentSessionId }: StoredDelivery) =>
      agentSessionId === undefined || ownerId === caller.userId || this.#mayKnow(caller, agentSessionId);
    return listingOf(
      store.list(deliveryRecords, workspaceId, [hookId], pageOf(page)),
      page.limit,
      (bytes: Uint8Array) => {
        const delivery = deliveryIn(bytes);
        return isKnown(delivery) ? shownDelivery(delivery) : undefined;
      },
    );
  }

  /** Sends a delivery again, with its id. One that waits is returned as it is. Throws `not_found`, `role_too_low` and `hook_paused`. */
  replay(caller: Principal, hookId: string, deliveryId: string): Delivery {
    const { workspaceId } = caller;
    this.#sending(caller, hookId);
    const delivery = this.#states.delivery(workspaceId, hookId, deliveryId);
    if (delivery === undefined) throw notFound();
    if (delivery.status === 'pending') return shownDelivery(delivery);
    const now = timestamp();
    const again = {
      ...delivery,
      status: 'pending',
      queuedAt: now,
      nextAttemptAt: now,
      finishedAt: null,
    } as const;
    this.#states.queue(hookIdOf(workspaceId, hookId), again);
    return shownDelivery(again);
  }

  /** Returns a hook that the caller controls: the owner of the hook and owners of the workspace do. */
  #controlled({ workspaceId, userId, role }: Principal, hookId: string): StoredHook {
    const stored = this.#states.read(workspaceId, hookId);
    const { ownerId } = stored.record;
    if (userId === ownerId || role === 'owner') return stored;
    throw new AppError(
      'role_too_low',
      `The hook belongs to ${ownerId}. Only this member and owners of the workspace can change, test or delete it.`,
    );
  }

  /** Returns a hook that the caller controls and that is not paused. */
  #sending(caller: Principal, hookId: string): StoredHook {
    const stored = this.#controlled(caller, hookId);
    if (!this.#states.isPaused({ workspaceId: caller.workspaceId, id: hookId })) return stored;
    throw new AppError('hook_paused', 'The hook is paused, so it sends nothing.');
  }

  #removeSome(workspaceId: string, hookId: string): boolean {
    const { store } = this.#context;
    const keys = ([deliveryRecords, hookQueue] as const).map((kind) => ({
      kind,
      ids: [...store.listKeys(kind, workspaceId, [hookId], MAX_REMOVED)],
    }));
    store.write((tx) => {
      for (const { kind, ids } of keys)
        for (const [, id = ''] of ids) tx.remove(kind, workspaceId, hookId, id);
    });
    return keys.every(({ ids }) => ids.length < MAX_REMOVED);
  }

  #shown(workspaceId: WorkspaceId, id: string, { record, definition }: StoredHook): Hook {
    const snapshot = this.#states.actors.peek({ workspaceId, id })?.snapshot;
    if (snapshot === undefined) throw notFound();
    const { isPaused, reason } = snapshot.context;
    return {
      id,
      ...definition,
      paused: isPaused,
      status: hookStatus(snapshot),
      reason,
      pending: this.#states.bookOf(workspaceId, id).pending,
      olderSecretUntil: validSecrets(record, Date.now())[1]?.expiresAt ?? null,
      ownerId: record.ownerId,
      createdAt: record.createdAt,
      updatedAt: record.updatedAt,
    };
  }
}

/** Returns a name that no datasource can have, because their slugs contain no colon. */
function newSecretName(hookId: string, at: string): string {
  return `hook:${hookId}:${Date.parse(at).toString(36)}`;
}

function encoded(definition: Definition): Uint8Array {
  return Buffer.from(JSON.stringify(definition));
}

function shownFilter({ metadata, ...filter }: Definition['filter']): Definition['filter'] {
  return { ...filter, ...shownMetadata(metadata) };
}

function checkUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const message =
    parsed === undefined || parseHost(parsed.hostname).kind === 'invalid'
      ? 'must be a URL with one host, such as https://receiver.example.com/troupe'
      : parsed.username !== '' || parsed.password !== ''
        ? 'must not contain a user or a password: the receiver recognises requests by their signature'
        : parsed.port === '0'
          ? 'must not have the port 0'
          : undefined;
  if (message !== undefined)
    throw new AppError('invalid_request', `The URL of the hook ${message}.`, {
      errors: [{ path: '/url', message }],
    });
}

function staleUpdate(updatedAt: string): AppError {
  const detail = `The hook was last updated at ${updatedAt}. Read it again first.`;
  return new AppError('stale_update', detail, { members: { updatedAt } });
}

function nothingToChange(): AppError {
  const message = 'name at least one member to change';
  return new AppError('invalid_request', `Nothing is to change: ${message}.`, {
    errors: [{ path: '', message }],
  });
}
