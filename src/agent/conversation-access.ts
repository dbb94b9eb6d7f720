/** Who may use a conversation: its creator and members with a grant. Owners of the workspace may read it. */
import { timestamp } from '#src/core/clock.ts';
import { AppError, notFound } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import {
  type ConversationGrant,
  type ConversationRecord,
  conversationGrants,
  conversationRecords,
} from '#storage/conversations.ts';
import { memberRecords } from '#storage/identity.ts';
import type { Store } from '#storage/store.ts';

/** What a member was granted of a conversation, as it is served. */
export interface Grant extends ConversationGrant {
  readonly userId: string;
}

export class ConversationAccess {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  mayRead(principal: Principal, id: string, record: ConversationRecord): boolean {
    return principal.role === 'owner' || this.#mayUse(principal, id, record);
  }

  /** Returns the conversation. Throws `not_found` when there is none, or the caller may not know of it. */
  readable(principal: Principal, id: string): ConversationRecord {
    const record = this.#store.get(conversationRecords, principal.workspaceId, id);
    if (record === undefined || !this.mayRead(principal, id, record)) throw notFound();
    return record;
  }

  /** Throws `not_found`, or `conversation_read_only` for an owner of the workspace whose it is not. */
  usable(principal: Principal, id: string): ConversationRecord {
    const record = this.readable(principal, id);
    if (!this.#mayUse(principal, id, record)) throw readOnly();
    return record;
  }

  grants(principal: Principal, id: string): Grant[] {
    this.readable(principal, id);
    const all = { limit: Number.POSITIVE_INFINITY };
    return [...this.#store.list(conversationGrants, principal.workspaceId, [id], all)].map(
      ({ id: userId, value }) => ({ userId, ...value }),
    );
  }

  /** Lets a member use the conversation. Idempotent. Throws `invalid_request` for a user who is not a member. */
  grant(principal: Principal, id: string, userId: string): Grant {
    const { workspaceId } = principal;
    this.#own(principal, id);
    if (this.#store.get(memberRecords, workspaceId, userId) === undefined) {
      throw new AppError('invalid_request', 'A conversation can be shared with members of its workspace.', {
        errors: [{ path: '/userId', message: 'is no member of this workspace' }],
      });
    }
    const known = this.#store.get(conversationGrants, workspaceId, id, userId);
    if (known !== undefined) return { userId, ...known };
    const grant = { grantedBy: principal.userId, createdAt: timestamp() };
    this.#store.write((tx) => tx.put(conversationGrants, grant, workspaceId, id, userId));
    return { userId, ...grant };
  }

  /** Takes a grant back; a member may give up their own. Throws `not_found`. */
  revoke(principal: Principal, id: string, userId: string): void {
    const { workspaceId } = principal;
    if (userId === principal.userId) this.readable(principal, id);
    else this.#own(principal, id);
    if (this.#store.get(conversationGrants, workspaceId, id, userId) === undefined) throw notFound();
    this.#store.write((tx) => tx.remove(conversationGrants, workspaceId, id, userId));
  }

  #own(principal: Principal, id: string): void {
    if (this.readable(principal, id).createdBy !== principal.userId) throw readOnly();
  }

  #mayUse({ workspaceId, userId }: Principal, id: string, { createdBy }: ConversationRecord): boolean {
    return createdBy === userId || this.#store.get(conversationGrants, workspaceId, id, userId) !== undefined;
  }
}

function readOnly(): AppError {
  return new AppError('conversation_read_only', 'This conversation is somebody else’s: you may read it.');
}
