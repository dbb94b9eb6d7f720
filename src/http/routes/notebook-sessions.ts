import { AppError, notFound } from '#src/base/errors/errors.ts';
import { type EnvironmentId, isPlausibleId, type NotebookId, type WorkspaceId } from '#src/base/ids.ts';
import { shownMetadata } from '#src/base/metadata-filter.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import type { CodeResult } from '#src/contract/wire/session.ts';
import type { CodeCalls } from '#src/notebook/requests/code-calls.ts';
import type { Executions } from '#src/notebook/requests/executions.ts';
import type { SessionInterruptions } from '#src/notebook/requests/session-interruption.ts';
import type { NotebookSessionList } from '#src/notebook/sessions/notebook-session-list.ts';
import type { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import { contentOf } from '#src/runtime/runs/output-content.ts';
import type { RunRepository } from '#src/runtime/runs/run-repository.ts';
import { STREAM_DESCRIPTION, streamReply, streamRequestOf } from '../handlers/event-streams.ts';
import { eventTicketHandling, type TicketIssuer } from '../handlers/event-tickets.ts';
import type { RunWaiting } from '../handlers/run-waiting.ts';
import { assetReply } from '../reply/content-reply.ts';
import { accepted, defer, encodedJson, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

export interface NotebookSessionRoutesOptions {
  readonly sessions: NotebookSessions;
  readonly list: NotebookSessionList;
  readonly interruptions: SessionInterruptions;
  readonly tickets: TicketIssuer;
  /** Rejects when the workspace may open no session, because its files have reached their quota. */
  readonly admit: (workspaceId: WorkspaceId) => Promise<void>;
}

/** Notebook sessions. */
export function notebookSessionRoutes(options: NotebookSessionRoutesOptions): readonly Route[] {
  const { sessions, list, interruptions, tickets, admit } = options;
  return [
    defineRoute({
      ...OPERATIONS.openNotebookSession,
      summary: 'Open a notebook as a live session',
      description:
        'The session has the id of its notebook. It starts at once; its event stream and a GET of the session show when it is ready. ' +
        'Opening a session runs no cell: all cells are stale until they are executed. With `ttlS` or `idleTimeoutS` the session ' +
        'ends by itself.',
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
          ...shownMetadata(body.metadata),
          lifetime: { ttlS: body.ttlS ?? null, idleTimeoutS: body.idleTimeoutS ?? null },
          by: {
            userId: principal.userId,
            readsDatasources: principal.scopes.includes('datasource:read'),
          },
        });
        return accepted(record, pathOf('getNotebookSession', { sessionId: record.sessionId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.listNotebookSessions,
      summary: 'List notebook sessions, by the time at which they were last opened',
      description: 'Unlike reading a session, listing starts no kernel.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      readsStoreOnly: true,
      errors: ['invalid_cursor'],
      handle: async ({ principal, query, signal }) =>
        ok(await list.page(principal.workspaceId, { ...query, signal })),
    }),
    defineRoute({
      ...OPERATIONS.getNotebookSession,
      largeAnswer: true,
      summary: 'Read a notebook session',
      description:
        'Reading an open session whose kernel is gone, for example after a restart of the server, starts a new kernel. ' +
        'A closed session stays closed.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      errors: ['at_capacity', 'quota_exceeded'],
      handle: ({ principal: { workspaceId }, params: { sessionId } }) =>
        sessions.whenReadable(workspaceId, sessionId, () => {
          const record = sessions.recordJson(workspaceId, sessionId);
          return record instanceof Uint8Array ? encodedJson(record) : ok(record);
        }),
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
        ok(await sessions.close(principal.workspaceId, params.sessionId, principal.userId)),
    }),
    defineRoute({
      ...OPERATIONS.hibernateNotebookSession,
      whileFull: true,
      summary: 'Put a notebook session to sleep',
      description:
        'Stops the kernel: its variables are lost, but cells, outputs and history are kept. The next use ' +
        'of the session, or `wake`, starts a new kernel. A sleeping session is not changed.',
      tags: ['Notebook sessions'],
      access: { action: 'inspect.control' },
      errors: ['session_busy', 'session_not_ready', 'session_failed', 'session_closed'],
      handle: ({ principal: { workspaceId }, params: { sessionId } }) =>
        sessions.whenReadable(workspaceId, sessionId, () => ok(sessions.hibernate(workspaceId, sessionId))),
    }),
    defineRoute({
      ...OPERATIONS.interruptNotebookSession,
      whileFull: true,
      summary: 'Interrupt the run or the code call of a notebook session',
      description:
        'Ends the run or the code call that keeps the session busy. A run is cancelled as by ' +
        '`POST /api/v3/runs/{runId}/cancel`; a code call is interrupted, and its caller gets a result ' +
        'with `success: false`. Returns 202 when the interruption has begun: the session is `ready` again ' +
        'once the work has ended. When nothing runs, the response is 200, nothing changes, and a sleeping session ' +
        'stays asleep. The prompt of an agent that works in the notebook continues: cancel its run to end ' +
        'it.',
      tags: ['Notebook sessions'],
      access: { action: 'session.interrupt' },
      errors: ['session_closed'],
      handle({ principal: { workspaceId }, params: { sessionId } }) {
        const interruption = interruptions.interrupt(workspaceId, sessionId);
        return interruption.status === 'idle'
          ? ok(interruption)
          : accepted(interruption, pathOf('getNotebookSession', { sessionId }));
      },
    }),
    defineRoute({
      ...OPERATIONS.wakeNotebookSession,
      whileFull: true,
      summary: 'Wake a notebook session',
      description:
        'Starts a kernel for a session that sleeps, or whose kernel ended with the server. No cell is ' +
        'run. A session that is awake is not changed.',
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
    defineRoute({
      ...OPERATIONS.getNotebookSessionAsset,
      largeAnswer: true,
      summary: 'Read a large output of a notebook session',
      description:
        'Events of the session name an output or figure over 64 KiB by its `assetId`. Such an output can be ' +
        'read as long as the notebook shows it. The response is 404 when the cell has another output, after the ' +
        'next code call, and when the session is closed. Runs store the outputs of their cells as ' +
        'separate assets, with other ids. Reading does not wake a sleeping session. The media type was ' +
        'chosen by notebook code, so only plain images and plain text are marked to be shown in the ' +
        'browser.',
      tags: ['Notebook sessions'],
      access: { action: 'session.read' },
      errors: ['range_not_satisfiable'],
      async handle({ principal: { workspaceId }, params: { sessionId, assetId }, headers, headOnly }) {
        const read = () => sessions.asset(workspaceId, sessionId, assetId);
        const { mimetype, data } = await sessions.whenReadable(workspaceId, sessionId, read);
        return assetReply({ mimetype, ...(await contentOf(data, workspaceId)) }, headers, headOnly);
      },
    }),
    defineRoute({
      ...OPERATIONS.createNotebookEventTicket,
      ...eventTicketHandling({
        tickets,
        action: 'session.read',
        stream: 'followNotebookSession',
        isClosed: ({ workspaceId }, sessionId) => sessions.isClosed(workspaceId, sessionId),
      }),
      summary: 'Get a ticket for the events of a notebook session',
      tags: ['Notebook sessions'],
    }),
  ];
}

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
        'Executes all cells, or the named cells and the stale cells that they depend on. Code and ' +
        'configuration in the request are saved with the notebook. Returns 202 with the run as soon as the run ' +
        'is stored. Follow `run-status` on the event stream, or read `GET /api/v3/runs/{runId}`, to learn ' +
        'how it ended. With `wait` the response is sent when the run has ended (200), or when the time is ' +
        'over (202). Disconnecting does not cancel the run. A sleeping session is woken, and the request ' +
        'waits up to 30 seconds for its kernel; if the client disconnects during that wait, nothing is ' +
        'submitted. If the session is `starting`, or the kernel needs longer than that, the response is 409 ' +
        '`session_not_ready` with `Retry-After`.',
      tags: ['Executions'],
      access: { action: 'run.submit' },
      bodyLimitBytes: 16 * 1024 * 1024,
      errors: [
        'unknown_cell',
        'duplicate_cell',
        'stale_update',
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
      handle(request) {
        const { principal, params, body } = request;
        const submission = executions.submit(principal, params.sessionId, body, request);
        return submission instanceof Promise
          ? submission.then((submitted) => waiting.submitted(request, submitted))
          : waiting.submitted(request, submission);
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

/** Returns the result for a failure of the call itself, after status 200 was already sent. */
function unfinished({ code, message }: AppError): CodeResult {
  return {
    success: false,
    output: null,
    stdout: '',
    stderr: '',
    media: [],
    errors: [{ type: code, message, cellId: null }],
  };
}

/** Returns the session that the header names. Throws `missing_session` or `not_found`. */
function namedSession({
  headers,
}: {
  readonly headers: Readonly<Record<'service-session-id', string>>;
}): string {
  const sessionId = headers['service-session-id'];
  if (sessionId === '') {
    throw new AppError('missing_session', 'Name the session in the header Service-Session-Id.');
  }
  if (!isPlausibleId(sessionId)) throw notFound();
  return sessionId;
}

/** Code that runs in a notebook session, outside of its cells. */
export function codeRoutes(calls: CodeCalls, sessions: NotebookSessions): readonly Route[] {
  return [
    defineRoute({
      ...OPERATIONS.executeCode,
      summary: 'Run Python in a live notebook session',
      description:
        'The session, which the header `Service-Session-Id` names, must be ready and in edit mode. The code runs in the ' +
        "kernel's scratchpad: it can read the notebook's variables. Names that the code defines end with the call, except with " +
        '`keep`; cells never see these names. The code can edit the notebook with `marimo._code_mode`. When the code fails, the response is 200 with `success: false`. No run is recorded. ' +
        'Disconnecting interrupts the code. If the code runs for long, the server sends the status early, and then white space at ' +
        'intervals, so that proxies keep the connection open. The body is still valid JSON. A session that sleeps is woken, ' +
        'and the call waits up to 30 seconds for its kernel.',
      tags: ['Live editing'],
      access: { action: 'code.execute' },
      whileFull: true, // because code can delete files of the workspace when the disk is full
      homeOf: ({ headers }) => ({ id: headers['service-session-id'] }),
      errors: [
        'missing_session',
        'not_found',
        'session_busy',
        'session_not_ready',
        'session_not_editable',
        'session_closed',
        'session_failed',
        'at_capacity',
        'quota_exceeded',
      ],
      prepare: (request) =>
        sessions.whenAwake(request.principal.workspaceId, namedSession(request), () => request.signal),
      async handle({ principal, headers, body, signal, trace }) {
        const sessionId = namedSession({ headers });
        const { code, keep = false, timeoutS } = body;
        const toolCallId = body.tool_call_id ?? undefined;
        const call = { code, by: principal.userId, keep, timeoutS, toolCallId, trace };
        const { result } = await calls.begin(principal.workspaceId, sessionId, call, signal);
        return defer(result, unfinished);
      },
    }),
  ];
}
