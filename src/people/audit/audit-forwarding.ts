/**
 * Forwards the audit of all workspaces to a receiver. The store is the buffer, and it has the id of each workspace's
 * last forwarded entry. So no entry that the audit still keeps is lost by a restart, or while the receiver is down.
 * Memory holds one batch. An entry may arrive twice after a crash; its id identifies it. In a server of several
 * workers one worker forwards.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { unawaited } from '#src/base/async/unawaited.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { OperatorWarning } from '#src/base/log/operator-warning.ts';
import type { PlaneContext } from '#src/runtime/sessions/plane-context.ts';
import { SYSTEM } from '#storage/keys.ts';
import { auditCursors } from '#storage/records/audit.ts';
import { workspaceExists } from '#storage/records/identity.ts';
import type { AuditReceiver } from './audit-receiver.ts';
import type { AuditTrail } from './audit-trail.ts';

const EVERY_MS = 2_000;
/** A receiver takes one batch after the other, and some confirm a batch only after half a second. */
const MAX_BATCH = 500;

type ForwardingContext = Pick<PlaneContext, 'store' | 'cluster' | 'log'>;

export class AuditForwarding implements AsyncDisposable {
  readonly #context: ForwardingContext;
  readonly #trail: Pick<AuditTrail, 'list'>;
  readonly #receiver: AuditReceiver;
  readonly #timer: NodeJS.Timeout;
  #sweeping: Promise<void> | undefined;
  #failingSince: string | undefined;
  #isClosed = false;

  constructor(context: ForwardingContext, trail: Pick<AuditTrail, 'list'>, receiver: AuditReceiver) {
    this.#context = context;
    this.#trail = trail;
    this.#receiver = receiver;
    this.#timer = setInterval(() => unawaited(this.sweep(), 'audit-forwarding: the sweep'), EVERY_MS).unref();
  }

  /** Returns warnings for operators; empty while the receiver takes entries. */
  get warnings(): readonly OperatorWarning[] {
    if (this.#failingSince === undefined) return [];
    const text = `The audit has not been forwarded since ${this.#failingSince}: look into the log.`;
    return [{ kind: 'audit_not_forwarded', text }];
  }

  /** Forwards the waiting entries. Resolves when all are forwarded or forwarding has failed; never rejects. */
  sweep(): Promise<void> {
    if (this.#isClosed || !this.#isResponsible) return Promise.resolve();
    this.#sweeping ??= this.#forwardAll().finally(() => {
      this.#sweeping = undefined;
    });
    return this.#sweeping;
  }

  /** Whether this process forwards the audit. */
  get #isResponsible(): boolean {
    return this.#context.cluster.owns(SYSTEM);
  }

  async #forwardAll(): Promise<void> {
    const { log } = this.#context;
    try {
      while (this.#isResponsible && (await this.#forwardRound()));
      if (this.#isClosed) return;
      if (this.#failingSince !== undefined) log.info({}, 'the audit is forwarded again');
      this.#failingSince = undefined;
    } catch (error) {
      if (this.#failingSince === undefined) log.error({ err: error }, 'the audit could not be forwarded');
      this.#failingSince ??= new Date().toISOString();
    }
  }

  /**
   * Forwards one batch of each workspace that has entries: a workspace whose entries arrive faster than the receiver
   * takes them must not delay the entries of others, because delayed entries are deleted in the end. Resolves with
   * whether a workspace has more.
   */
  async #forwardRound(): Promise<boolean> {
    const { store } = this.#context;
    let hasMore = false;
    store.refresh();
    for (let partition: string | undefined; ; ) {
      partition = store.nextPartition(partition);
      if (partition === undefined) return hasMore;
      if (partition !== SYSTEM && workspaceExists(store, partition))
        hasMore = (await this.#forward(partition as WorkspaceId)) || hasMore;
      if (this.#isClosed) return false;
      await nextTurn();
    }
  }

  /** Forwards a batch. Resolves with whether there are more entries. */
  async #forward(workspaceId: WorkspaceId): Promise<boolean> {
    const { store } = this.#context;
    const trail = this.#trail;
    const receiver = this.#receiver;
    const after = store.get(auditCursors, workspaceId);
    const { items, nextCursor } = await trail.list(workspaceId, { after, limit: MAX_BATCH });
    const last = items.at(-1);
    if (last === undefined || this.#isClosed) return false;
    await receiver.send(items.map((entry) => ({ workspaceId, ...entry })));
    if (!workspaceExists(store, workspaceId)) return false;
    store.write((tx) => tx.put(auditCursors, last.id, workspaceId));
    await store.durable();
    return nextCursor !== null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    this.#isClosed = true;
    // A receiver that does not respond must not delay the end of the server.
    this.#receiver.close();
    await this.#sweeping;
  }
}
