import Type from 'typebox';
import type { EnvironmentId, NotebookId } from '#src/core/ids.ts';
import { NotebookStreamEvent } from '#src/events/envelope.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import { accepted, ok, stream } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { NotebookSessionSchema } from '../schemas/session.ts';

export function notebookSessionRoutes(sessions: NotebookSessions): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/v3/notebook-sessions',
      operationId: 'openNotebookSession',
      summary: 'Open a notebook as a live session',
      description:
        'The session has the id of its notebook and starts at once; its events and a GET show when it is ready. ' +
        'Opening runs no cell: all are stale until executed.',
      tags: ['Notebook sessions'],
      access: { action: 'session.open' },
      body: Type.Object(
        {
          notebookId: Type.String({ minLength: 1, maxLength: 200 }),
          environmentId: Type.String({ minLength: 1, maxLength: 200 }),
          mode: Type.Optional(
            Type.Union([Type.Literal('edit'), Type.Literal('run')], {
              default: 'edit',
              description: '`run` is a non-editing session.',
            }),
          ),
        },
        { additionalProperties: false },
      ),
      responses: {
        202: {
          description: 'Starting.',
          schema: NotebookSessionSchema,
          headers: { location: 'The session.' },
        },
      },
      errors: [
        'environment_occupied',
        'environment_closed',
        'session_exists',
        'at_capacity',
        'quota_exceeded',
        'not_found',
      ],
      handle({ principal, body }) {
        const record = sessions.open(principal.workspaceId, {
          notebookId: body.notebookId as NotebookId,
          environmentId: body.environmentId as EnvironmentId,
          mode: body.mode ?? 'edit',
          by: {
            userId: principal.userId,
            readsDatasources: principal.scopes.includes('datasource:read'),
          },
        });
        return accepted(record, `/api/v3/notebook-sessions/${record.sessionId}`);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebook-sessions/:sessionId',
      operationId: 'getNotebookSession',
      summary: 'Read a notebook session',
      description:
        'An open session whose kernel is gone (after a restart) comes back; a closed one stays closed.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      responses: { 200: { description: 'Its state.', schema: NotebookSessionSchema } },
      errors: ['at_capacity', 'quota_exceeded'],
      handle({ principal, params }) {
        const record = sessions.record(principal.workspaceId, params.sessionId);
        const uncommitted = sessions.uncommitted(principal.workspaceId, params.sessionId);
        return uncommitted === undefined ? ok(record) : uncommitted.then(() => ok(record));
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/v3/notebook-sessions/:sessionId',
      operationId: 'closeNotebookSession',
      summary: 'Close a notebook session',
      description: 'Stops the kernel and closes bound agent sessions. Saved content and history are kept.',
      tags: ['Notebook sessions'],
      access: { action: 'session.close' },
      responses: { 200: { description: 'The final record.', schema: NotebookSessionSchema } },
      errors: ['session_closed'],
      handle: async ({ principal, params }) =>
        ok(await sessions.close(principal.workspaceId, params.sessionId)),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/v3/notebook-sessions/:sessionId/events',
      operationId: 'followNotebookSession',
      summary: 'Follow a notebook session',
      description:
        'Server-Sent Events: `session.snapshot`, the current state as events, `session.replayed`, then what happens. ' +
        'With `Last-Event-ID`, exactly what was missed where the server still has it. Heartbeats are comments.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      headers: { 'last-event-id': 'The id of the last event that was received.' },
      responses: {
        200: { description: 'The stream.', schema: NotebookStreamEvent, contentType: 'text/event-stream' },
      },
      errors: ['at_capacity', 'quota_exceeded'],
      handle: ({ principal, params, headers }) =>
        stream(sessions.subscribe(principal.workspaceId, params.sessionId, headers['last-event-id'])),
    }),
  ];
}
