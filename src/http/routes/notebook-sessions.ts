import type { EnvironmentId, NotebookId, WorkspaceId } from '#src/core/ids.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import { accepted, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { STREAM_DESCRIPTION, streamReply, streamRequestOf } from './event-streams.ts';

/** Notebook sessions. `admit` rejects when the workspace may open none, because its files have reached their quota. */
export function notebookSessionRoutes(
  sessions: NotebookSessions,
  admit: (workspaceId: WorkspaceId) => Promise<void>,
): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.openNotebookSession,
      summary: 'Open a notebook as a live session',
      description:
        'The session has the id of its notebook. It starts at once; its event stream and a GET show when it is ready. ' +
        'Opening runs no cell: all cells are stale until they are executed.',
      tags: ['Notebook sessions'],
      access: { action: 'session.open' },
      sharedTurn: true,
      homeInBody: true,
      homeOf: ({ body }) => ({ id: body.notebookId }),
      errors: [
        'environment_occupied',
        'environment_closed',
        'session_exists',
        'at_capacity',
        'quota_exceeded',
        'file_quota_exceeded',
        'not_found',
      ],
      async prepare({ principal: { workspaceId }, body }) {
        await admit(workspaceId);
        await sessions.prepare(workspaceId, body.notebookId, true);
      },
      handle({ principal, body }) {
        const record = sessions.open(principal.workspaceId, {
          notebookId: body.notebookId as NotebookId,
          environmentId: body.environmentId as EnvironmentId,
          mode: body.mode ?? 'edit',
          arguments: body.arguments ?? [],
          by: {
            userId: principal.userId,
            readsDatasources: principal.scopes.includes('datasource:read'),
          },
        });
        return accepted(record, `/api/v3/notebook-sessions/${record.sessionId}`);
      },
    }),
    defineRoute({
      ...OPERATIONS.getNotebookSession,
      summary: 'Read a notebook session',
      description:
        'Reading an open session whose kernel is gone, for example after a restart of the server, starts a new kernel. ' +
        'A closed session stays closed.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      errors: ['at_capacity', 'quota_exceeded'],
      handle: ({ principal: { workspaceId }, params: { sessionId } }) =>
        sessions.whenReadable(workspaceId, sessionId, () => ok(sessions.record(workspaceId, sessionId))),
    }),
    defineRoute({
      ...OPERATIONS.closeNotebookSession,
      summary: 'Close a notebook session',
      description:
        'Stops the kernel and closes the agent session that is bound to it. Saved content and history are kept.',
      tags: ['Notebook sessions'],
      access: { action: 'session.close' },
      errors: ['session_closed'],
      handle: async ({ principal, params }) =>
        ok(await sessions.close(principal.workspaceId, params.sessionId)),
    }),
    defineRoute({
      ...OPERATIONS.hibernateNotebookSession,
      whileFull: true,
      summary: 'Put a notebook session to sleep',
      description:
        'Stops the kernel; its variables are lost, and cells, outputs and history stay. The next use of the session, or ' +
        '`wake`, starts another kernel. A session that sleeps already is left as it is.',
      tags: ['Notebook sessions'],
      access: { action: 'inspect.control' },
      errors: ['session_busy', 'session_not_ready', 'session_failed', 'session_closed'],
      handle: ({ principal: { workspaceId }, params: { sessionId } }) =>
        sessions.whenReadable(workspaceId, sessionId, () => ok(sessions.hibernate(workspaceId, sessionId))),
    }),
    defineRoute({
      ...OPERATIONS.wakeNotebookSession,
      whileFull: true,
      summary: 'Wake a notebook session',
      description:
        'Starts a kernel for a session that sleeps, or whose kernel ended with the server. No cell is run. A session that ' +
        'is awake is left as it is.',
      tags: ['Notebook sessions'],
      access: { action: 'inspect.control' },
      errors: ['session_failed', 'session_closed', 'at_capacity', 'quota_exceeded'],
      handle: ({ principal: { workspaceId }, params: { sessionId } }) =>
        sessions.whenReadable(workspaceId, sessionId, () => ok(sessions.wake(workspaceId, sessionId))),
    }),
    defineRoute({
      ...OPERATIONS.followNotebookSession,
      summary: 'Follow a notebook session',
      description: `Sends server-sent events. ${STREAM_DESCRIPTION}`,
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      errors: ['at_capacity', 'quota_exceeded'],
      handle: ({ principal: { workspaceId }, params: { sessionId }, headers, query }) =>
        sessions.whenReadable(workspaceId, sessionId, () =>
          streamReply(sessions.subscribe(workspaceId, sessionId, streamRequestOf(headers, query))),
        ),
    }),
  ];
}
