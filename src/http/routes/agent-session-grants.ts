import type { ConversationAccess } from '#src/agent/conversation-access.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { created, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Agent sessions'];

/** With whom conversations are shared. */
export function agentSessionGrantRoutes(access: ConversationAccess): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listAgentSessionGrants,
      summary: 'List the members a conversation is shared with',
      description:
        'In addition to them, its owner can use it. Owners of the workspace can read, share and hand it over.',
      tags,
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok({ items: access.grants(principal, params.sessionId) }),
    }),
    defineRoute({
      ...OPERATIONS.grantAgentSession,
      summary: 'Share a conversation with a member',
      description:
        'The member can then read, prompt and close the conversation, with its whole history. Its owner and the owners of the ' +
        'workspace can share it.',
      tags,
      access: { action: 'agent.share' },
      sharedTurn: true, // members are removed in the home of the workspace
      errors: ['conversation_read_only'],
      checkAccess: ({ principal, params }) => access.checkSharing(principal, params.sessionId),
      handle({ principal, params: { sessionId }, body }) {
        const grant = access.grant(principal, sessionId, body.userId);
        const userId = encodeURIComponent(grant.userId);
        return created(grant, `/api/v3/agent-sessions/${sessionId}/grants/${userId}`);
      },
    }),
    defineRoute({
      ...OPERATIONS.revokeAgentSessionGrant,
      summary: 'Stop sharing a conversation',
      description: 'Those who can share it can do this, and the member it is shared with.',
      tags,
      access: { action: 'agent.read' },
      errors: ['conversation_read_only'],
      handle({ principal, params }) {
        access.revoke(principal, params.sessionId, params.userId);
        return noContent();
      },
    }),
  ];
}
