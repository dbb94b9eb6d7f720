import {
  AgentEntrySchema,
  AgentSessionGrantListSchema,
  AgentSessionGrantSchema,
  AgentSessionSchema,
  AgentSessionSummarySchema,
  NewAgentSessionGrantSchema,
  OpenAgentSessionSchema,
} from '../agent.ts';
import { AgentStreamEventSchema } from '../events.ts';
import { AgentSessionListQuery, OrderedPageQuery, SessionRunsQuery } from '../lists.ts';
import { AgentRunSchema, PromptRequestSchema, SubmittedAgentRunSchema, WaitQuery } from '../run.ts';
import { pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import {
  ETAG_HEADER,
  EVENT_TICKET,
  NOT_MODIFIED,
  READ_CONDITION,
  STREAM_HEADERS,
  StreamQuery,
  streamResponses,
  submittedResponses,
  WRITE_CONDITIONS,
} from './parts.ts';

/** Conversations with agents: prompts, entries, events and grants. */
export const AGENT_SESSION_OPERATIONS = declareOperations({
  listAgentSessions: {
    query: AgentSessionListQuery,
    responses: {
      200: {
        description: 'A page of conversations.',
        schema: pageSchema('AgentSessionPage', AgentSessionSummarySchema),
      },
    },
  },
  openAgentSession: {
    body: OpenAgentSessionSchema,
    responses: {
      200: {
        description: 'The conversation was already open in this environment, with this binding.',
        schema: AgentSessionSchema,
      },
      201: {
        description: 'The conversation was opened.',
        schema: AgentSessionSchema,
        headers: { location: 'The path of the session.' },
      },
    },
  },
  getAgentSession: {
    headers: READ_CONDITION,
    responses: {
      200: { description: 'The conversation.', schema: AgentSessionSchema, headers: ETAG_HEADER },
      304: NOT_MODIFIED,
    },
  },
  closeAgentSession: {
    headers: WRITE_CONDITIONS,
    responses: { 200: { description: 'The closed session.', schema: AgentSessionSchema } },
  },
  deleteConversation: {
    responses: { 204: { description: 'The conversation was deleted.' } },
  },
  listConversationEntries: {
    query: OrderedPageQuery,
    responses: {
      200: { description: 'A page of entries.', schema: pageSchema('AgentEntryPage', AgentEntrySchema) },
    },
  },
  createAgentEventTicket: {
    ...EVENT_TICKET,
  },
  followAgentSession: {
    headers: STREAM_HEADERS,
    query: StreamQuery,
    responses: streamResponses(AgentStreamEventSchema),
  },
  listAgentSessionGrants: {
    responses: {
      200: {
        description: 'All grants.',
        schema: AgentSessionGrantListSchema,
      },
    },
  },
  grantAgentSession: {
    body: NewAgentSessionGrantSchema,
    responses: {
      201: {
        description: 'The conversation is shared.',
        schema: AgentSessionGrantSchema,
        headers: { location: 'The path of the grant.' },
      },
    },
  },
  revokeAgentSessionGrant: {
    responses: { 204: { description: 'The conversation is no longer shared.' } },
  },
  handOverAgentSession: {
    body: NewAgentSessionGrantSchema,
    responses: {
      200: { description: 'The conversation, without its entries.', schema: AgentSessionSummarySchema },
    },
  },
  listPrompts: {
    query: SessionRunsQuery,
    responses: {
      200: { description: 'A page of runs.', schema: pageSchema('AgentRunPage', AgentRunSchema) },
    },
  },
  submitPrompt: {
    body: PromptRequestSchema,
    query: WaitQuery,
    responses: submittedResponses(SubmittedAgentRunSchema),
  },
});
