/**
 * Finds the conversation that a request to open one names. A conversation that the caller may not know of is refused like a missing
 * one.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError, notFound } from '#src/base/errors/errors.ts';
import { newId, type SessionId, type WorkspaceId } from '#src/base/ids.ts';
import type { OpenAgentSession } from '#src/contract/wire/agent.ts';
import { newListedId } from '#storage/lists/listed-ids.ts';
import { type ConversationRecord, conversationRecords } from '#storage/records/conversations.ts';
import type { Store } from '#storage/store.ts';
import { CONVERSATION, type ConversationContext } from './conversation-context.ts';

/** How many ids are tried until one is at home here. A worker with a single slot of 256 fails once in 10 million times. */
const MAX_TRIES = 4096;

/**
 * Returns the id of the conversation that the request names, or a new id from `makeNew`. Throws
 * `invalid_request` when the request names two conversations.
 */
export function conversationSessionId(
  { id, notebookSessionId }: OpenAgentSession,
  makeNew: () => SessionId = () => newId('conversation'),
): SessionId {
  if (id != null && notebookSessionId != null && id !== notebookSessionId) {
    throw new AppError('invalid_request', 'A bound conversation has the id of its notebook session.', {
      errors: [{ path: '/id', message: 'must be notebookSessionId when both are given' }],
    });
  }
  return (notebookSessionId ?? id ?? makeNew()) as SessionId;
}

/**
 * Returns a new id for a conversation without a notebook. It is greater than every committed id, and its home is in this worker.
 * Call it in a shared turn. Throws `unavailable` when this worker is no longer the home of anything.
 */
export function newConversationId(
  store: Pick<Store, 'isShared' | 'list'>,
  workspaceId: WorkspaceId,
  owns: (workspaceId: string, id: string) => boolean,
): SessionId {
  const conversations = [{ kind: conversationRecords, partition: workspaceId }];
  const first = newListedId<SessionId>(store, 'conversation', conversations);
  for (let id = first, tries = 0; tries < MAX_TRIES; id = newId('conversation'), tries++)
    if (owns(workspaceId, id)) return id;
  const detail = 'The server is moving work between its processes. Try again in a moment.';
  throw new AppError('unavailable', detail, { headers: { 'retry-after': '1' } });
}

/**
 * Returns the stored record of the conversation; undefined for a new one. Throws `not_found`, `unavailable`,
 * `binding_differs`, `conversation_read_only` or `conversation_not_shared`.
 */
export function savedConversation(
  { access, store, removals }: ConversationContext,
  principal: Principal,
  sessionId: SessionId,
  request: OpenAgentSession,
): ConversationRecord | undefined {
  const { id, notebookSessionId } = request;
  const saved = store.get(conversationRecords, principal.workspaceId, sessionId);
  if (notebookSessionId == null && id != null) {
    if (saved === undefined || !access.mayRead(principal, sessionId, saved)) throw notFound('/id');
  } else if (saved === undefined) {
    const { workspaceId } = principal;
    // Records of a deleted conversation with this id may still be stored.
    if (!removals.isPending({ kind: CONVERSATION, workspaceId, home: sessionId, id: sessionId }))
      return undefined;
    const detail = 'The earlier conversation of this notebook is still being deleted. Try again in a moment.';
    throw new AppError('unavailable', detail, { headers: { 'retry-after': '1' } });
  }
  const record =
    notebookSessionId == null
      ? access.usable(principal, sessionId)
      : namingNotebook(() => access.usableInNotebook(principal, sessionId));
  if (changesSettings(record, request)) access.checkSettings(principal, record);
  if (record.notebookSessionId === (notebookSessionId ?? null)) return record;
  const detail = `The conversation ${sessionId} is bound to the notebook session ${record.notebookSessionId}: name that session.`;
  throw new AppError('binding_differs', detail);
}

/** Returns whether a request would change the stored configuration or context of a conversation. */
function changesSettings(
  saved: ConversationRecord,
  { config = {}, context = {} }: OpenAgentSession,
): boolean {
  const { model = saved.model, instructions = saved.instructions } = config;
  const { datasourceSlugs: slugs = saved.datasourceSlugs } = context;
  const areSame =
    slugs.length === saved.datasourceSlugs.length &&
    slugs.every((slug, i) => slug === saved.datasourceSlugs[i]);
  return model !== saved.model || instructions !== saved.instructions || !areSame;
}

/** Returns the result of `find`. If it throws `not_found`, the error names the member of the request. */
export function namingNotebook<T>(find: () => T): T {
  try {
    return find();
  } catch (error) {
    throw error instanceof AppError && error.code === 'not_found' ? notFound('/notebookSessionId') : error;
  }
}
