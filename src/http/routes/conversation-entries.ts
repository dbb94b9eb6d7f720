import type { AgentSessions } from '#src/agent/agent-sessions.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The entries of conversations, page by page. */
export function conversationEntryRoutes(sessions: AgentSessions): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listConversationEntries,
      summary: "List a conversation's entries, oldest first unless the order says otherwise",
      tags: ['Agent sessions'],
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, params, query, signal }) =>
        encodedJson(await sessions.entries(principal, params.sessionId, { ...query, signal })),
    }),
  ];
}
