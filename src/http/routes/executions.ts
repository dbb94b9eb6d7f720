import type { Executions } from '#src/notebook/executions.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import { ExecutionRequestSchema, RunSchema, SubmittedRunSchema } from '#src/wire/run.ts';
import { PageQuery, pageSchema } from '#src/wire/shape.ts';
import { accepted, encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Executions of cells. */
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
        'Executes all cells, or the named cells and the stale cells that they depend on. Code and configuration in the ' +
        'request are saved with the notebook. Returns 202 as soon as the run is stored. Follow `run-status` on the event ' +
        'stream, or read `GET /api/v3/runs/{runId}`, to learn how it ended.',
      tags: ['Executions'],
      access: { action: 'run.submit' },
      bodyLimitBytes: 16 * 1024 * 1024,
      body: ExecutionRequestSchema,
      responses: {
        202: {
          description: 'The run was stored and has started.',
          schema: SubmittedRunSchema,
          headers: { location: 'The path of the run.' },
        },
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
