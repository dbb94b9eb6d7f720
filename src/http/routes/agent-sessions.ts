import type { AgentPrompts } from '#src/agent/agent-prompts.ts';
import type { AgentSessions } from '#src/agent/agent-sessions.ts';
import { AgentSessionSchema, AgentSessionSummarySchema, OpenAgentSessionSchema } from '#src/wire/agent.ts';
import { AgentStreamEventSchema } from '#src/wire/events.ts';
import { PromptRequestSchema, RunSchema, SubmittedRunSchema } from '#src/wire/run.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { accepted, created, encodedJson, ok, stream } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const tags = ['Agent sessions'];

/** Conversations with agents. */
export function agentSessionRoutes(sessions: AgentSessions, prompts: AgentPrompts): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/agent-sessions',
      operationId: 'openAgentSession',
      summary: 'Open an agent conversation',
      description:
        'Opens a new conversation, or a saved one again. With `notebookSessionId` the agent works in that notebook and the ' +
        'conversation has its id; this binding never changes. `config` and `context` are saved; members that are omitted ' +
        'keep their saved values.',
      tags,
      access: { action: 'agent.open' },
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
      errors: [
        'unknown_model',
        'not_found',
        'conversation_read_only',
        'notebook_not_ready',
        'binding_differs',
        'environment_differs',
        'environment_closed',
        'session_exists',
        'at_capacity',
        'quota_exceeded',
      ],
      handle({ principal, body }) {
        const { record, isNew } = sessions.open(principal, body);
        return isNew ? created(record, `/api/v3/agent-sessions/${record.sessionId}`) : ok(record);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions',
      operationId: 'listAgentSessions',
      summary: 'List the conversations you can read, oldest first',
      tags,
      access: { action: 'agent.read' },
      query: PageQuery,
      responses: {
        200: {
          description: 'A page of conversations.',
          schema: pageSchema('AgentSessionPage', AgentSessionSummarySchema),
        },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(sessions.list(principal, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId',
      operationId: 'getAgentSession',
      summary: 'Read a conversation with its entries, configuration and context',
      tags,
      access: { action: 'agent.read' },
      responses: { 200: { description: 'The conversation.', schema: AgentSessionSchema } },
      handle: ({ principal, params }) => ok(sessions.record(principal, params.sessionId)),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/agent-sessions/:sessionId',
      operationId: 'closeAgentSession',
      summary: 'Close an agent session',
      description: 'The history is kept. A notebook session that the conversation is bound to stays open.',
      tags,
      access: { action: 'agent.close' },
      responses: { 200: { description: 'The closed session.', schema: AgentSessionSchema } },
      errors: ['session_closed', 'conversation_read_only'],
      handle: ({ principal, params }) => ok(sessions.close(principal, params.sessionId)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/agent-sessions/:sessionId/runs',
      operationId: 'submitPrompt',
      summary: 'Prompt an agent',
      description:
        'Returns 202 as soon as the run is stored. What the agent writes and does is sent on the event stream and stored ' +
        'with the run. Follow `run-status` on the event stream, or read `GET /api/v3/runs/{runId}`, to learn how it ended. ' +
        'A prompt that was interrupted by the death of the server is never run again.',
      tags,
      access: { action: 'agent.prompt' },
      body: PromptRequestSchema,
      responses: {
        202: {
          description: 'The run was stored and has started.',
          schema: SubmittedRunSchema,
          headers: { location: 'The path of the run.' },
        },
      },
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
      handle({ principal, params, body }) {
        const submitted = prompts.submit(principal, params.sessionId, body.prompt);
        return accepted(submitted, `/api/v3/runs/${submitted.runId}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId/runs',
      operationId: 'listPrompts',
      summary: "List a conversation's prompts, oldest first",
      tags,
      access: { action: 'agent.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page of runs.', schema: pageSchema('RunPage', RunSchema) } },
      errors: ['invalid_cursor'],
      handle: ({ principal, params, query }) => encodedJson(prompts.list(principal, params.sessionId, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId/events',
      operationId: 'followAgentSession',
      summary: 'Follow an agent session',
      description:
        'Sends server-sent events: `session.snapshot`, the history as `agent-entry` events, the text so far of an answer ' +
        'in progress as deltas, `session.replayed`, and then live events. Each delta names the entry it belongs to. When ' +
        'that entry never arrives, the agent gave up the answer.',
      tags,
      access: { action: 'agent.read' },
      headers: { 'last-event-id': 'The id of the last event you received, to continue after it.' },
      responses: {
        200: {
          description: 'The event stream.',
          schema: AgentStreamEventSchema,
          contentType: 'text/event-stream',
        },
      },
      errors: ['quota_exceeded'],
      handle: ({ principal, params, headers }) =>
        stream(sessions.subscribe(principal, params.sessionId, headers['last-event-id'])),
    }),
  ];
}
