import { defineRecord } from './codec.ts';

/** A conversation that was opened once. Its history is its entries. */
export interface ConversationRecord {
  readonly createdBy: string;
  readonly createdAt: string;
  /** Of the last change of its configuration or context. */
  readonly updatedAt: string;
  /** The notebook that it belongs to; null for a standalone conversation. */
  readonly notebookSessionId: string | null;
  /** What was asked for; null is the default. */
  readonly model: string | null;
  readonly instructions: string | null;
  readonly datasourceSlugs: readonly string[];
}

/** Key: workspace id, conversation id. */
export const conversationRecords = defineRecord<ConversationRecord>('conversation', 1);

/** One entry of a conversation, stored as it is served, with what only its model's provider understands. */
export interface EntryRecord {
  readonly document: Uint8Array;
  /** The model that wrote it; null for what a person or a tool said. */
  readonly model: string | null;
  /** JSON: for each part of the content, what the provider wants back with it. */
  readonly provider: Uint8Array | null;
}

/** Key: workspace id, conversation id, entry id. */
export const entryRecords = defineRecord<EntryRecord>('conversation-entry', 1);

/** Who else may use a conversation. Key: workspace id, conversation id, user id. */
export interface ConversationGrant {
  readonly grantedBy: string;
  readonly createdAt: string;
}
export const conversationGrants = defineRecord<ConversationGrant>('conversation-grant', 1);

/** That a workspace has a key for a provider of models; the key itself is sealed. Key: workspace id, provider. */
export interface ModelKeyRecord {
  readonly updatedBy: string;
  readonly updatedAt: string;
}
export const modelKeyRecords = defineRecord<ModelKeyRecord>('model-key', 1);
