/**
 * Access to conversations. The owner of a conversation, at first its creator, and the members it is shared with may use it. Owners
 * of the workspace may read, share and hand over every conversation.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import type { AgentSessionGrant } from '#src/contract/wire/agent.ts';
import {
  type ConversationGrant,
  type ConversationRecord,
  conversationGrants,
  conversationRecords,
} from '#storage/records/conversations.ts';
import { memberRecords } from '#storage/records/identity.ts';
import type { Store } from '#storage/store.ts';
import { ConversationFollowers } from './conversation-followers.ts';

/** The part of a caller that decides which conversations the caller may read. */
export type Reader = Pick<Principal, 'workspaceId' | 'userId' | 'role'>;

export class ConversationAccess {
  readonly followers = new ConversationFollowers();
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  mayRead(principal: Reader, id: string, record: ConversationRecord): boolean {
    return principal.role === 'owner' || this.#mayUse(principal, id, record);
  }

  /** Returns the conversation. Throws `not_found` when it does not exist, or the caller may not know of it. */
  readable(principal: Principal, id: string): ConversationRecord {
    const record = this.#store.get(conversationRecords, principal.workspaceId, id);
    if (record === undefined || !this.mayRead(principal, id, record)) throw notFound();
    return record;
  }

  /**
   * Throws `not_found`, and throws `conversation_read_only` for owners of the workspace who may only read the
   * conversation.
   */
  usable(principal: Principal, id: string): ConversationRecord {
    const record = this.readable(principal, id);
    if (!this.#mayUse(principal, id, record)) throw readOnly(record);
    return record;
  }

  /**
   * Throws the errors of `usable`, but `conversation_not_shared` instead of `not_found` if the conversation belongs to a notebook:
   * every editor can see that the notebook has a conversation, and has to know whom to ask.
   */
  usableInNotebook(principal: Principal, id: string): ConversationRecord {
    const record = this.#store.get(conversationRecords, principal.workspaceId, id);
    const isBound = record !== undefined && record.notebookSessionId !== null;
    if (isBound && !this.mayRead(principal, id, record)) throw notShared(record);
    return this.usable(principal, id);
  }

  /** Throws `not_found`, or `conversation_read_only` when the caller may not share the conversation and hand it over. */
  checkSharing(principal: Principal, id: string): ConversationRecord {
    const record = this.readable(principal, id);
    if (principal.role !== 'owner' && ownerOf(record) !== principal.userId) throw readOnly(record);
    return record;
  }

  /**
   * Throws `conversation_read_only` unless the caller owns the conversation: its instructions and datasources apply to the prompts
   * of all its users, with the rights of each.
   */
  checkSettings(principal: Principal, record: ConversationRecord): void {
    if (ownerOf(record) === principal.userId) return;
    const ownerId = ownerOf(record);
    const detail = `Only the owner of this conversation, ${ownerId}, may change its model, instructions and datasources.`;
    throw new AppError('conversation_read_only', detail, { members: { ownerId } });
  }

  /**
   * Throws the errors of `usable`, except for owners of the workspace who may manage it: they may close every conversation and
   * cancel its prompts.
   */
  checkControl(principal: Principal, id: string): void {
    const { role, scopes } = principal;
    if (role === 'owner' && scopes.includes('workspace:manage')) this.readable(principal, id);
    else this.usable(principal, id);
  }

  grants(principal: Principal, id: string): AgentSessionGrant[] {
    this.readable(principal, id);
    const all = { limit: Number.POSITIVE_INFINITY };
    return [...this.#store.list(conversationGrants, principal.workspaceId, [id], all)].map(
      ({ id: userId, value }) => grantOf(userId, value),
    );
  }

  /**
   * Lets a member use the conversation. Idempotent. Call it in a shared turn, because another worker may remove the
   * member. Throws `invalid_request` for a user who is not a member.
   */
  grant(principal: Principal, id: string, userId: string): AgentSessionGrant {
    const { workspaceId } = principal;
    this.checkSharing(principal, id);
    this.#requireMember(principal, userId);
    const known = this.#store.get(conversationGrants, workspaceId, id, userId);
    if (known !== undefined) return grantOf(userId, known);
    const grant = { grantedBy: principal.userId, createdAt: timestamp() };
    this.#store.write((tx) => tx.put(conversationGrants, grant, workspaceId, id, userId));
    return grantOf(userId, grant);
  }

  /** Removes a grant, and ends the event streams that it allowed. A member may remove their own grant. Throws `not_found`. */
  revoke(principal: Principal, id: string, userId: string): void {
    const { workspaceId } = principal;
    if (userId === principal.userId) this.readable(principal, id);
    else this.checkSharing(principal, id);
    if (this.#store.get(conversationGrants, workspaceId, id, userId) === undefined) throw notFound();
    this.#store.write((tx) => tx.remove(conversationGrants, workspaceId, id, userId));
    this.#endStreams(workspaceId, id);
  }

  /**
   * Makes a member the owner of the conversation, whether it is open or closed. The previous owner may still use it, as
   * a member it is shared with. Call it in a shared turn, like `grant`. Throws `invalid_request` for a user who is not
   * a member.
   */
  handOver(principal: Principal, id: string, userId: string): ConversationRecord {
    const { workspaceId } = principal;
    const record = this.checkSharing(principal, id);
    this.#requireMember(principal, userId);
    const before = ownerOf(record);
    if (before === userId) return record;
    const now = timestamp();
    const handedOver = { ...record, ownerId: userId, updatedAt: now };
    this.#store.write((tx) => {
      tx.put(conversationRecords, handedOver, workspaceId, id);
      tx.remove(conversationGrants, workspaceId, id, userId);
      if (tx.get(memberRecords, workspaceId, before) === undefined) return;
      tx.put(conversationGrants, { grantedBy: principal.userId, createdAt: now }, workspaceId, id, before);
    });
    this.#endStreams(workspaceId, id);
    return handedOver;
  }

  #endStreams(workspaceId: string, id: string): void {
    const record = this.#store.get(conversationRecords, workspaceId, id);
    this.followers.endUnless(
      workspaceId,
      id,
      (principal) => record !== undefined && this.mayRead(principal, id, record),
    );
  }

  #requireMember({ workspaceId }: Principal, userId: string): void {
    if (this.#store.get(memberRecords, workspaceId, userId) !== undefined) return;
    throw new AppError('invalid_request', 'A conversation can be shared with members of its workspace.', {
      errors: [{ path: '/userId', message: 'is not a member of this workspace' }],
    });
  }

  #mayUse({ workspaceId, userId }: Reader, id: string, record: ConversationRecord): boolean {
    return (
      ownerOf(record) === userId || this.#store.get(conversationGrants, workspaceId, id, userId) !== undefined
    );
  }
}

/** Returns the user whom the conversation belongs to. */
export function ownerOf({ ownerId, createdBy }: ConversationRecord): string {
  return ownerId ?? createdBy;
}

function readOnly(record: ConversationRecord): AppError {
  const ownerId = ownerOf(record);
  const detail =
    `This conversation belongs to ${ownerId}. They and the owners of the workspace can share it, also with themselves, ` +
    'and hand it over.';
  return new AppError('conversation_read_only', detail, { members: { ownerId } });
}

function notShared(record: ConversationRecord): AppError {
  const ownerId = ownerOf(record);
  const detail =
    `The agent conversation of this notebook belongs to ${ownerId}. Ask them, or an owner of the workspace, to share it ` +
    'with you or to hand it over.';
  return new AppError('conversation_not_shared', detail, { members: { ownerId } });
}

function grantOf(userId: string, { grantedBy, createdAt }: ConversationGrant): AgentSessionGrant {
  return { userId, createdBy: grantedBy, createdAt };
}
