import type { Executions } from '#src/notebook/executions.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import { accepted, encodedJson } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { PageQuery, pageSchema } from '../schemas/paging.ts';
import { ExecutionRequestSchema, RunSchema, SubmittedRunSchema } from '../schemas/run.ts';

export function executionRoutes(
  executions: Executions,
  sessions: NotebookSessions,
  runs: RunRepository,
): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/notebook-sessions/:sessionId/executions',
      operationId: 'submitExecution',
      summary: 'Execute cells',
      description:
        'All cells, or the named ones with the stale cells they depend on. Code and configuration that come along are ' +
        'saved with the notebook. The answer comes once the run is on disk; its end is an event and a GET away.',
      tags: ['Executions'],
      access: { action: 'run.submit' },
      bodyLimitBytes: 16 * 1024 * 1024,
      body: ExecutionRequestSchema,
      responses: {
        202: { description: 'Running.', schema: SubmittedRunSchema, headers: { location: 'The run.' } },
      },
      errors: [
        'unknown_cell',
        'duplicate_cell',
        'session_busy',
        'session_not_ready',
        'session_not_editable',
        'session_closed',
        'session_failed',
        'structural_error',
        'at_capacity',
        'quota_exceeded',
      ],
      async handle({ principal, params, body }) {
        const submitted = await executions.submit(principal.workspaceId, params.sessionId, body);
        return accepted(submitted, `/api/v3/runs/${submitted.runId}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebook-sessions/:sessionId/executions',
      operationId: 'listExecutions',
      summary: "List a session's executions, oldest first",
      tags: ['Executions'],
      access: { action: 'run.read' },
      query: PageQuery,
      responses: { 200: { description: 'A page of runs.', schema: pageSchema('RunPage', RunSchema) } },
      errors: ['invalid_cursor'],
      handle({ principal, params, query }) {
        sessions.known(principal.workspaceId, params.sessionId);
        return encodedJson(runs.list(principal.workspaceId, params.sessionId, query.after, query.limit));
      },
    }),
  ];
}
