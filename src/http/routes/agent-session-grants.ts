import Type from 'typebox';
import type { ConversationAccess } from '#src/agent/conversation-access.ts';
import { created, noContent, ok } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { ShareSchema } from '../schemas/agent.ts';
import { UserId } from '../schemas/identity.ts';

const tags = ['Agent sessions'];

export function agentSessionGrantRoutes(access: ConversationAccess): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId/grants',
      operationId: 'listAgentSessionGrants',
      summary: 'Who a conversation is shared with',
      description: 'Beside them, its creator may use it, and owners of the workspace may read it.',
      tags,
      access: { action: 'agent.read' },
      responses: {
        200: {
          description: 'All grants.',
          schema: Type.Object(
            { items: Type.Array(ShareSchema) },
            { $id: 'AgentSessionGrantList', additionalProperties: false },
          ),
        },
      },
      handle: ({ principal, params }) => ok({ items: access.grants(principal, params.sessionId) }),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/agent-sessions/:sessionId/grants',
      operationId: 'grantAgentSession',
      summary: 'Share a conversation with a member',
      description: 'They may read it, prompt it and close it. Only its creator can share it.',
      tags,
      access: { action: 'agent.share' },
      body: Type.Object({ userId: UserId }, { additionalProperties: false }),
      responses: {
        201: { description: 'Shared.', schema: ShareSchema, headers: { location: 'The grant.' } },
      },
      errors: ['conversation_read_only'],
      handle({ principal, params: { sessionId }, body }) {
        const share = access.grant(principal, sessionId, body.userId);
        const userId = encodeURIComponent(share.userId);
        return created(share, `/api/v3/agent-sessions/${sessionId}/grants/${userId}`);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/agent-sessions/:sessionId/grants/:userId',
      operationId: 'revokeAgentSessionGrant',
      summary: 'Stop sharing a conversation',
      description: 'By its creator, or by the member it was shared with.',
      tags,
      access: { action: 'agent.read' },
      responses: { 204: { description: 'No longer shared.' } },
      errors: ['conversation_read_only'],
      handle({ principal, params }) {
        access.revoke(principal, params.sessionId, params.userId);
        return noContent();
      },
    }),
  ];
}
