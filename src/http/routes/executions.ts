import type { Executions } from '#src/notebook/executions.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { accepted, encodedJson } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import type { RunWaiting } from './run-waiting.ts';

/** Executions of cells. */
export function executionRoutes(
  executions: Executions,
  sessions: NotebookSessions,
  runs: RunRepository,
  waiting: RunWaiting,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.submitExecution,
      summary: 'Execute cells',
      description:
        'Executes all cells, or the named cells and the stale cells that they depend on. Code and configuration in the ' +
        'request are saved with the notebook. Returns 202 as soon as the run is stored. Follow `run-status` on the event ' +
        'stream, or read `GET /api/v3/runs/{runId}`, to learn how it ended. With `wait` the response is the run, once it ' +
        'has ended: 200, or 202 when the time is over. Disconnecting does not cancel the run. A session that sleeps is woken, ' +
        'and the request waits up to 30 seconds for its kernel; disconnecting then submits nothing. One that is `starting`, or ' +
        'whose kernel takes longer, refuses with 409 `session_not_ready` and `Retry-After`.',
      tags: ['Executions'],
      access: { action: 'run.submit' },
      bodyLimitBytes: 16 * 1024 * 1024,
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
      prepare: (request) =>
        sessions.whenAwake(request.principal.workspaceId, request.params.sessionId, () => request.signal),
      async handle(request) {
        const { principal, params, body } = request;
        const submitted = await executions.submit(principal, params.sessionId, body, request);
        const { runId } = submitted;
        return waiting.submitted(request, runId, accepted(submitted, `/api/v3/runs/${runId}`));
      },
      resume: (request, first) => waiting.resumed(request, first),
    }),
    defineRoute({
      ...OPERATIONS.listExecutions,
      summary: "List a session's executions, oldest first unless the order says otherwise",
      tags: ['Executions'],
      access: { action: 'run.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      async handle({ principal, params: { sessionId }, query, signal }) {
        sessions.known(principal.workspaceId, sessionId);
        const page = { ...query, sessionId, kind: 'notebook', signal } as const;
        return encodedJson(await runs.reader.list(principal.workspaceId, page));
      },
    }),
  ];
}
