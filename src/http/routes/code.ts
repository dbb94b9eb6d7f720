import Type from 'typebox';
import { AppError, notFound } from '#src/core/errors.ts';
import { isPlausibleId } from '#src/core/ids.ts';
import type { CodeCalls } from '#src/notebook/code-calls.ts';
import type { CodeResult } from '#src/notebook/work/code-work.ts';
import { late } from '../reply.ts';
import { defineRoute, type Route } from '../route.ts';
import { nullable } from '../schemas/paging.ts';

const CodeResultSchema = Type.Object(
  {
    success: Type.Boolean({ description: 'False when the code, a cell it ran, or the kernel failed.' }),
    output: nullable(
      Type.Object({ mimetype: Type.String(), data: Type.Unknown() }, { additionalProperties: false }),
    ),
    stdout: Type.String({
      description: 'Of the code and the cells it ran; the middle of very much is left out.',
    }),
    stderr: Type.String(),
    errors: Type.Array(
      Type.Object(
        { type: Type.String(), message: Type.String(), cellId: nullable(Type.String()) },
        { additionalProperties: false },
      ),
    ),
  },
  { $id: 'CodeResult', additionalProperties: false },
);

/** What is answered when the code's own result cannot be, and the status is out already. */
function unfinished({ code, message }: AppError): CodeResult {
  return {
    success: false,
    output: null,
    stdout: '',
    stderr: '',
    errors: [{ type: code, message, cellId: null }],
  };
}

export function codeRoutes(calls: CodeCalls): readonly Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/cee/kernel/execute',
      operationId: 'executeCode',
      summary: 'Run Python in a live notebook session',
      description:
        'The session, named by the header `Service-Session-Id`, is in edit mode and ready. The code runs in the ' +
        "kernel's scratchpad: it sees the notebook's variables and leaves no names behind; with `marimo._code_mode` it " +
        'edits the notebook. Failures of the code are answers with `success: false`. No run is recorded; a client that ' +
        'leaves interrupts its code. While code takes long, the status and then white space are sent at intervals, so ' +
        'that no proxy ends the silence: the body is JSON all the same.',
      tags: ['Live editing'],
      access: { action: 'code.execute' },
      headers: { 'service-session-id': 'The notebook session.' },
      body: Type.Object(
        {
          code: Type.String({ description: 'Python; `await` is allowed at the top level.' }),
          tool_call_id: Type.Optional(
            Type.String({ maxLength: 256, description: 'Echoed on the `execution-completed` event.' }),
          ),
        },
        { additionalProperties: false },
      ),
      responses: { 200: { description: 'What the code did.', schema: CodeResultSchema } },
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
      handle({ principal, headers, body, signal }) {
        const sessionId = headers['service-session-id'];
        if (sessionId === '') {
          throw new AppError(
            'missing_session',
            'Say which session is meant in the header Service-Session-Id.',
          );
        }
        if (!isPlausibleId(sessionId)) throw notFound();
        const call = { code: body.code, toolCallId: body.tool_call_id };
        return late(calls.execute(principal.workspaceId, sessionId, call, signal), unfinished);
      },
    }),
  ];
}
