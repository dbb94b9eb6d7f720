import { defineMark, defineRecord } from '../codec.ts';

/** A conversation, open or not. Its history is in its entries. */
export interface ConversationRecord {
  readonly createdBy: string;
  /** The user to whom the conversation was handed over. When missing, its creator owns it. */
  readonly ownerId?: string;
  readonly createdAt: string;
  /** The time of the last change of its configuration or context. */
  readonly updatedAt: string;
  /** The notebook session it is bound to; null for a standalone conversation. */
  readonly notebookSessionId: string | null;
  /** The requested model; null means the default. */
  readonly model: string | null;
  readonly instructions: string | null;
  readonly datasourceSlugs: readonly string[];
  /**
   * The user who chose the datasources; the creator of the conversation when missing. The rights of this user also
   * limit the data that prompts of other users read.
   */
  readonly datasourcesChosenBy?: string;
}

/** Key: workspace id, conversation id. */
export const conversationRecords = defineRecord<ConversationRecord>('conversation', 1);

/**
 * The conversations of a workspace by their creation time. The time cannot be read from the id,
 * because that may be the id of a notebook. Key: workspace id, place (`places.ts`).
 */
export const conversationPlaces = defineMark('conversation-place');

/**
 * One entry of a conversation. It is stored in the form in which it is served, together with data for the provider of
 * its model.
 */
export interface EntryRecord {
  /** JSON of the entry. */
  readonly document: Uint8Array;
  /** The model that wrote the entry; null for entries of a person or a tool. */
  readonly model: string | null;
  /**
   * JSON: for each part of the content, data of the provider that must be sent back to it with that part.
   */
  readonly provider: Uint8Array | null;
}

/** Key: workspace id, conversation id, entry id. */
export const entryRecords = defineRecord<EntryRecord>('conversation-entry', 1);

/** A member with whom a conversation is shared. Granted in shared turns. Key: workspace id, conversation id, user id. */
export interface ConversationGrant {
  readonly grantedBy: string;
  readonly createdAt: string;
}
export const conversationGrants = defineRecord<ConversationGrant>('conversation-grant', 1);

/** The fact that a workspace has its own API key for a model provider. The key is stored encrypted, elsewhere. Key: workspace id, provider. */
export interface ModelKeyRecord {
  readonly updatedBy: string;
  readonly updatedAt: string;
}
export const modelKeyRecords = defineRecord<ModelKeyRecord>('model-key', 1);
