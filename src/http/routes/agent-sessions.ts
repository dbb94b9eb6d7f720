import type { ConversationAccess } from '#src/agent/conversation-access.ts';
import type { AgentPlane } from '#src/agent/open-agents.ts';
import type { AgentSession } from '#src/contract/wire/agent.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { STREAM_DESCRIPTION, streamReply, streamRequestOf } from '../handlers/event-streams.ts';
import { eventTicketHandling, type TicketIssuer } from '../handlers/event-tickets.ts';
import type { RunWaiting } from '../handlers/run-waiting.ts';
import { contentTag, requireState, unlessKnown } from '../reply/entity-tag.ts';
import { created, encodedJson, noContent, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Agent sessions'];

/** Conversations with agents. */
export function agentSessionRoutes(
  { sessions, prompts, deletion }: Pick<AgentPlane, 'sessions' | 'prompts' | 'deletion'>,
  tickets: TicketIssuer,
  waiting: RunWaiting,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.openAgentSession,
      summary: 'Open an agent conversation',
      description:
        'Opens a new conversation, or a saved one again. With `notebookSessionId` the agent works in that notebook, and the ' +
        'conversation has the id of the notebook; this binding never changes. A notebook has one conversation. Other members can use ' +
        'the conversation when it is shared with them; the error `conversation_not_shared` names the members who can share it. `config` and `context` are saved; members that are omitted ' +
        'keep their saved values. A notebook session that sleeps is woken, and the request waits up to 30 seconds for its kernel.',
      tags,
      access: { action: 'agent.open' },
      sharedTurn: true,
      homeInBody: true,
      // Any worker can make a new conversation. The id of the request chooses the worker, so that all workers agree on the choice.
      homeOf: ({ body, requestId }) => ({ id: body.notebookSessionId ?? body.id ?? requestId }),
      errors: [
        'unknown_model',
        'not_found',
        'conversation_read_only',
        'conversation_not_shared',
        'notebook_not_ready',
        'binding_differs',
        'environment_differs',
        'environment_closed',
        'session_exists',
        'at_capacity',
        'quota_exceeded',
      ],
      checkAccess: ({ principal, body }) => sessions.checkOpen(principal, body),
      prepare: (request) => sessions.prepareOpen(request.principal, request.body, () => request.signal),
      handle({ principal, body }) {
        const { record, isNew } = sessions.open(principal, body);
        return isNew
          ? created(record, pathOf('getAgentSession', { sessionId: record.sessionId }))
          : ok(record);
      },
    }),
    defineRoute({
      ...OPERATIONS.listAgentSessions,
      summary: 'List the conversations you can read, by the time at which they were created',
      tags,
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        ok(await sessions.list(principal, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.getAgentSession,
      largeAnswer: true,
      summary: 'Read a conversation with its entries, configuration and context',
      tags,
      access: { action: 'agent.read' },
      handle: ({ principal, params: { sessionId }, headers }) =>
        sessions.whenReadable(principal, sessionId, () => {
          const record = sessions.record(principal, sessionId);
          return unlessKnown(ok(record), conversationTag(record), headers);
        }),
    }),
    defineRoute({
      ...OPERATIONS.closeAgentSession,
      summary: 'Close an agent session',
      description: 'The history is kept. The notebook session to which the conversation is bound stays open.',
      tags,
      access: { action: 'agent.close' },
      errors: ['session_closed', 'conversation_read_only', 'precondition_failed'],
      handle: ({ principal, params: { sessionId }, headers }) =>
        sessions.whenReadable(principal, sessionId, () => {
          const closed = sessions.close(principal, sessionId, (record) =>
            requireState(headers, () => conversationTag(record())),
          );
          return ok(closed);
        }),
    }),
    defineRoute({
      ...OPERATIONS.deleteConversation,
      summary: 'Delete a conversation',
      description:
        'Closes the session and deletes the conversation for ever: its entries, its grants, and its prompts with their ' +
        'outputs and assets. The owner of the conversation and owners of the workspace may delete it, while no prompt runs.',
      tags,
      access: { action: 'agent.delete' },
      errors: ['session_busy', 'conversation_read_only'],
      handle({ principal, params }) {
        deletion.delete(principal, params.sessionId);
        return noContent();
      },
    }),
    defineRoute({
      ...OPERATIONS.handOverAgentSession,
      summary: 'Hand a conversation over to another member',
      description:
        'The member becomes the owner of the conversation, with its whole history. The previous owner can still use the ' +
        'conversation, as a member with whom it is shared. The owner of a conversation and the owners of the workspace can ' +
        'hand it over, even when it is closed.',
      tags,
      access: { action: 'agent.share' },
      sharedTurn: true, // members are removed in the home of the workspace, so grants are made there too
      errors: ['conversation_read_only'],
      handle: ({ principal, params, body }) =>
        ok(sessions.handOver(principal, params.sessionId, body.userId)),
    }),
    defineRoute({
      ...OPERATIONS.submitPrompt,
      summary: 'Prompt an agent',
      description:
        'Returns 202 with the run as soon as the run is stored. The text and the tool calls of the agent are ' +
        'sent on the event stream and stored in the conversation. Follow `run-status` on the event ' +
        'stream, or read `GET /api/v3/runs/{runId}`, to learn how it ended. A prompt that was interrupted ' +
        'by a crash of the server is never run again. With `wait` the response is sent when the run has ' +
        'ended (200), or when the time is over (202). Disconnecting does not cancel the run.',
      tags,
      access: { action: 'agent.prompt' },
      errors: [
        'session_busy',
        'session_closed',
        'conversation_read_only',
        'no_model_configured',
        'model_not_configured',
        'unknown_model',
        'at_capacity',
        'quota_exceeded',
      ],
      checkAccess: ({ principal, params }) => sessions.checkUse(principal, params.sessionId),
      async handle(request) {
        const { principal, params, body } = request;
        const submission = await prompts.submit(principal, params.sessionId, body, request.trace);
        return waiting.submitted(request, submission);
      },
      resume: (request, first) => waiting.resumed(request, first),
    }),
    defineRoute({
      ...OPERATIONS.listPrompts,
      summary: "List a conversation's prompts, oldest first unless the order says otherwise",
      tags,
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, params, query, signal }) =>
        encodedJson(await prompts.list(principal, params.sessionId, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.listConversationEntries,
      largeAnswer: true,
      summary: "List a conversation's entries, oldest first unless the order says otherwise",
      tags,
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, params, query, signal }) =>
        encodedJson(await sessions.entries(principal, params.sessionId, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.followAgentSession,
      summary: 'Follow an agent session',
      description:
        `Sends server-sent events. ${STREAM_DESCRIPTION} The state is the history as \`agent-entry\` events and the text so ` +
        'far of an answer in progress as deltas. Each delta names its entry. If that entry never arrives, ' +
        'the agent has abandoned the answer.',
      tags,
      access: { action: 'agent.read' },
      errors: ['quota_exceeded'],
      handle: ({ principal, params: { sessionId }, headers, query }) =>
        sessions.whenReadable(principal, sessionId, () =>
          streamReply(sessions.subscribe(principal, sessionId, streamRequestOf(headers, query))),
        ),
    }),
    defineRoute({
      ...OPERATIONS.createAgentEventTicket,
      ...eventTicketHandling({
        tickets,
        action: 'agent.read',
        stream: 'followAgentSession',
        isClosed: (principal, sessionId) => sessions.isClosed(principal, sessionId),
      }),
      summary: 'Get a ticket for the events of an agent session',
      tags,
    }),
  ];
}

/** The grants of conversations. */
export function agentSessionGrantRoutes(access: ConversationAccess): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.listAgentSessionGrants,
      summary: 'List the members a conversation is shared with',
      description:
        'The owner of the conversation can also use it, but is not listed. Owners of the workspace can read, share and hand over the conversation.',
      tags,
      access: { action: 'agent.read' },
      readsStoreOnly: true,
      handle: ({ principal, params }) => ok({ items: access.grants(principal, params.sessionId) }),
    }),
    defineRoute({
      ...OPERATIONS.grantAgentSession,
      summary: 'Share a conversation with a member',
      description:
        'The member can then read, prompt and close the conversation, with its whole history. The owner of the conversation and ' +
        'the owners of the workspace can share it.',
      tags,
      access: { action: 'agent.share' },
      sharedTurn: true, // members are removed in the home of the workspace, so grants are made there too
      errors: ['conversation_read_only'],
      checkAccess: ({ principal, params }) => access.checkSharing(principal, params.sessionId),
      handle({ principal, params: { sessionId }, body }) {
        const grant = access.grant(principal, sessionId, body.userId);
        return created(grant, pathOf('revokeAgentSessionGrant', { sessionId, userId: grant.userId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.revokeAgentSessionGrant,
      summary: 'Stop sharing a conversation',
      description:
        'Members who can share the conversation can end a share. A member with whom it is shared can give up this access.',
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

/**
 * Returns the tag of a conversation. In an entry, only the outcome of a prompt ever changes. So the tag covers the outcomes, the
 * number of entries and the last entry.
 */
function conversationTag({ entries, ...summary }: AgentSession): string {
  const outcomes = entries.flatMap(({ outcome }) => outcome ?? []);
  return contentTag(JSON.stringify([summary, entries.length, entries.at(-1)?.id, outcomes]));
}
