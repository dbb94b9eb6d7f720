import type { AgentSessions } from '#src/agent/agent-sessions.ts';
import { AgentEntrySchema } from '#src/wire/agent.ts';
import { OrderedPageQuery } from '#src/wire/finding.ts';
import { pageSchema } from '#src/wire/shape.ts';
import { encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** The entries of conversations, page by page. */
export function conversationEntryRoutes(sessions: AgentSessions): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId/entries',
      operationId: 'listConversationEntries',
      summary: "List a conversation's entries, oldest first unless the order says otherwise",
      tags: ['Agent sessions'],
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      query: OrderedPageQuery,
      responses: {
        200: { description: 'A page of entries.', schema: pageSchema('AgentEntryPage', AgentEntrySchema) },
      },
      errors: ['invalid_cursor'],
      handle: async ({ principal, params, query, signal }) =>
        encodedJson(await sessions.entries(principal, params.sessionId, { ...query, signal })),
    }),
  ];
}
