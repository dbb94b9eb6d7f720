import type { WorkspaceId } from '#src/base/ids.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { conversationRecords } from '#storage/records/conversations.ts';
import type { Transaction } from '#storage/transaction.ts';
import { shownStatusOf } from './agent-session-record.ts';
import type { AgentSessions } from './agent-sessions.ts';
import { ownerOf } from './conversation-access.ts';
import type { ConversationContext } from './conversation-context.ts';
import type { ConversationDeletion } from './conversation-deletion.ts';

/**
 * The conversations that are bound to notebooks, as notebooks see them. Each notebook has at most one
 * conversation, which has the notebook's id.
 */
export class ConversationsOfNotebooks {
  readonly #context: ConversationContext;
  readonly #sessions: AgentSessions;
  readonly #deletion: ConversationDeletion;

  constructor(context: ConversationContext, sessions: AgentSessions, deletion: ConversationDeletion) {
    this.#context = context;
    this.#sessions = sessions;
    this.#deletion = deletion;
  }

  /** Returns the open conversation of a notebook; null when there is none. */
  ofNotebook(workspaceId: WorkspaceId, notebookId: string) {
    const { agentActors, store } = this.#context;
    const status = shownStatusOf(agentActors.actors.peek({ workspaceId, id: notebookId }));
    const conversation =
      status === 'closed'
        ? undefined
        : unlessDamaged(() => store.get(conversationRecords, workspaceId, notebookId));
    return conversation === undefined ? null : { ownerId: ownerOf(conversation), status };
  }

  /** Calls `changed` when the state of a notebook's conversation changes. Returns a function that removes the listener. */
  watchNotebook(workspaceId: WorkspaceId, notebookId: string, changed: () => void): () => void {
    return this.#context.agentActors.actors.watch({ workspaceId, id: notebookId }, changed);
  }

  /** Closes the conversation of a notebook session, if there is one, in the name of the user `by`. */
  closeBound(workspaceId: WorkspaceId, sessionId: string, by: string | undefined): void {
    this.#sessions.closeBound(workspaceId, sessionId, by);
  }

  /** See `ConversationDeletion.prepare`. */
  prepareDeletion(workspaceId: WorkspaceId, notebookId: string): (tx: Transaction) => void {
    return this.#deletion.prepare(workspaceId, notebookId);
  }
}
