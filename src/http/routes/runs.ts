import Type from 'typebox';
import type { RunKind } from '#machines/run.ts';
import type { RunId, SessionId, WorkspaceId } from '#src/core/ids.ts';
import type { Principal } from '#src/core/principal.ts';
import type { RunRepository } from '#src/runs/run-repository.ts';
import { accepted, encodedJson } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { RunSchema } from '../schemas/run.ts';

const Cancelling = Type.Object(
  { runId: Type.String(), status: Type.Literal('cancelling') },
  { $id: 'CancellationAccepted', additionalProperties: false },
);

/** `stop` interrupts what a run is doing, wherever that is. */
export type StopRun = (kind: RunKind, workspaceId: WorkspaceId, sessionId: SessionId, runId: RunId) => void;

/** Throws when a run belongs to a conversation that the caller may not read or, to `use` it, is not theirs to use. */
export type GuardRun = (principal: Principal, runId: string, access: 'read' | 'use') => void;

export function runRoutes(runs: RunRepository, stop: StopRun, guard: GuardRun): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/v3/runs/:runId',
      operationId: 'getRun',
      summary: 'Read a run',
      description: 'Runs stay readable after their sessions close.',
      tags: ['Runs'],
      access: { action: 'run.read' },
      responses: { 200: { description: 'The run.', schema: RunSchema } },
      handle({ principal, params }) {
        guard(principal, params.runId, 'read');
        return encodedJson(runs.json(principal.workspaceId, params.runId));
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/v3/runs/:runId/cancel',
      operationId: 'cancelRun',
      summary: 'Cancel a run',
      description:
        'Accepted means that the run becomes terminal, not that it is: follow its events or read it until then. ' +
        'Cancelling again while it runs is accepted again.',
      tags: ['Runs'],
      access: { action: 'run.cancel' },
      body: Type.Object({}, { additionalProperties: false }),
      optionalBody: true,
      responses: {
        202: { description: 'Accepted.', schema: Cancelling, headers: { location: 'The run.' } },
      },
      errors: ['run_finished', 'conversation_read_only'],
      handle({ principal, params }) {
        const runId = params.runId as RunId;
        guard(principal, runId, 'use');
        runs.cancel(principal.workspaceId, runId, (kind, sessionId) =>
          stop(kind, principal.workspaceId, sessionId, runId),
        );
        return accepted({ runId, status: 'cancelling' }, `/api/v3/runs/${runId}`);
      },
    }),
  ];
}
