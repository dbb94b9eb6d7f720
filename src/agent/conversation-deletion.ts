/**
 * Deletes conversations. The commit of a deletion removes the record and the actor of a conversation, so its
 * data can no longer be read. Entries, grants, prompts and their assets are removed afterwards in bounded
 * steps.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { placeOf } from '#storage/lists/places.ts';
import {
  conversationGrants,
  conversationPlaces,
  conversationRecords,
  entryRecords,
} from '#storage/records/conversations.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { AgentSessions } from './agent-sessions.ts';
import { CONVERSATION, type ConversationContext } from './conversation-context.ts';

/** The most records that one commit removes. */
const MAX_RECORDS = 200;

export class ConversationDeletion {
  readonly #context: ConversationContext;
  readonly #sessions: AgentSessions;

  constructor(context: ConversationContext, sessions: AgentSessions) {
    this.#context = context;
    this.#sessions = sessions;
    context.removals.define(CONVERSATION, (workspaceId, id) =>
      this.#removeSome(workspaceId as WorkspaceId, id),
    );
  }

  /** The conversation's owner and owners of the workspace may do this. */
  delete(principal: Principal, sessionId: string): void {
    const { store, access } = this.#context;
    access.checkSharing(principal, sessionId);
    store.write(this.prepare(principal.workspaceId, sessionId));
  }

  /**
   * Closes a conversation, if it exists, and returns the function that deletes it, to be called in the same turn. Throws
   * `session_busy` while a prompt runs.
   */
  prepare(workspaceId: WorkspaceId, sessionId: string): (tx: Transaction) => void {
    const { store, removals } = this.#context;
    const record = store.get(conversationRecords, workspaceId, sessionId);
    if (record === undefined) return () => {};
    const eraseSession = this.#sessions.prepareDeletion({ workspaceId, id: sessionId });
    return (tx) => {
      tx.remove(conversationRecords, workspaceId, sessionId);
      tx.remove(conversationPlaces, workspaceId, placeOf(record.createdAt, sessionId));
      eraseSession(tx);
      removals.add(tx, { kind: CONVERSATION, workspaceId, home: sessionId, id: sessionId });
    };
  }

  #removeSome(workspaceId: WorkspaceId, id: string): boolean {
    const { store, runDeletion } = this.#context;
    if (!runDeletion.removeRuns('agent', workspaceId, id)) return false;
    for (const kind of [entryRecords, conversationGrants]) {
      const keys = [...store.listKeys(kind, workspaceId, [id], MAX_RECORDS)];
      if (keys.length === 0) continue;
      store.write((tx) => {
        for (const key of keys) tx.remove(kind, workspaceId, ...key);
      });
      return false;
    }
    return true;
  }
}
