import { AppError, notFound } from '#src/core/errors.ts';
import { isPlausibleId } from '#src/core/ids.ts';
import type { CodeCalls } from '#src/notebook/code-calls.ts';
import type { NotebookSessions } from '#src/notebook/notebook-sessions.ts';
import { OPERATIONS } from '#src/wire/operations/table.ts';
import type { CodeResult } from '#src/wire/session.ts';
import { defer } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

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
        "kernel's scratchpad: it can read the notebook's variables, and its own names end with the call, unless `keep` says " +
        'otherwise. Cells never see them. The code can edit the notebook with `marimo._code_mode`. When the code fails, the response is 200 with `success: false`. No run is recorded. ' +
        'Disconnecting interrupts the code. While the code runs for long, the status and then white space are sent at ' +
        'intervals, so that proxies keep the connection open; the body is still valid JSON. A session that sleeps is woken, ' +
        'and the call waits up to 30 seconds for its kernel.',
      tags: ['Live editing'],
      access: { action: 'code.execute' },
      whileFull: true, // it is how files of a workspace are deleted
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
        const { code, keep = false } = body;
        const call = { code, keep, toolCallId: body.tool_call_id ?? undefined, trace };
        const { result } = await calls.begin(principal.workspaceId, sessionId, call, signal);
        return defer(result, unfinished);
      },
    }),
  ];
}
