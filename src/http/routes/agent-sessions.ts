import Type from 'typebox';
import type { AgentPrompts } from '#src/agent/agent-prompts.ts';
import type { AgentSessions } from '#src/agent/agent-sessions.ts';
import { AgentStreamEvent } from '#src/events/envelope.ts';
import { accepted, created, encodedJson, ok, stream } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { AgentSessionSchema, AgentSessionSummarySchema, OpenAgentSessionSchema } from '../schemas/agent.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';
import { RunSchema, SubmittedRunSchema } from '../schemas/run.ts';

const tags = ['Agent sessions'];

export function agentSessionRoutes(sessions: AgentSessions, prompts: AgentPrompts): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/agent-sessions',
      operationId: 'openAgentSession',
      summary: 'Open an agent conversation',
      description:
        'A new one, or a saved one again. With a notebook session it works in that notebook and has its id; the binding ' +
        'is for life. What is said here of configuration and context is saved, what is omitted stays.',
      tags,
      access: { action: 'agent.open' },
      body: OpenAgentSessionSchema,
      responses: {
        200: {
          description: 'It was open already, in this environment with this binding.',
          schema: AgentSessionSchema,
        },
        201: {
          description: 'Opened.',
          schema: AgentSessionSchema,
          headers: { location: 'The session.' },
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
      summary: 'List the conversations you may read, oldest first',
      tags,
      access: { action: 'agent.read' },
      query: PageQuery,
      responses: {
        200: { description: 'A page.', schema: pageSchema('AgentSessionPage', AgentSessionSummarySchema) },
      },
      errors: ['invalid_cursor'],
      handle: ({ principal, query }) => ok(sessions.list(principal, query)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/agent-sessions/:sessionId',
      operationId: 'getAgentSession',
      summary: 'Read a conversation: its entries, configuration and context',
      tags,
      access: { action: 'agent.read' },
      responses: { 200: { description: 'The session.', schema: AgentSessionSchema } },
      handle({ principal, params }) {
        const record = sessions.record(principal, params.sessionId);
        const uncommitted = sessions.uncommitted();
        return uncommitted === undefined ? ok(record) : uncommitted.then(() => ok(record));
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/agent-sessions/:sessionId',
      operationId: 'closeAgentSession',
      summary: 'Close an agent session',
      description: 'Its history is kept; a notebook session that it is bound to stays open.',
      tags,
      access: { action: 'agent.close' },
      responses: { 200: { description: 'The final record.', schema: AgentSessionSchema } },
      errors: ['session_closed', 'conversation_read_only'],
      handle: ({ principal, params }) => ok(sessions.close(principal, params.sessionId)),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/agent-sessions/:sessionId/runs',
      operationId: 'submitPrompt',
      summary: 'Prompt an agent',
      description:
        'The answer comes once the run is on disk; what the agent says and does is streamed, and kept with the run. A ' +
        'prompt whose server died is never run again.',
      tags,
      access: { action: 'agent.prompt' },
      body: Type.Object(
        { prompt: Type.String({ minLength: 1, maxLength: 500_000 }) },
        { additionalProperties: false },
      ),
      responses: {
        202: { description: 'Running.', schema: SubmittedRunSchema, headers: { location: 'The run.' } },
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
        'Server-Sent Events: `session.snapshot`, the history as `agent-entry` events, the text so far of an answer that ' +
        'is being written as deltas, `session.replayed`, then what happens. Deltas belong to the entry they name; an ' +
        'entry that never comes was given up.',
      tags,
      access: { action: 'agent.read' },
      headers: { 'last-event-id': 'The id of the last event that was received.' },
      responses: {
        200: { description: 'The stream.', schema: AgentStreamEvent, contentType: 'text/event-stream' },
      },
      errors: ['quota_exceeded'],
      handle: ({ principal, params, headers }) =>
        stream(sessions.subscribe(principal, params.sessionId, headers['last-event-id'])),
    }),
  ];
}
