import type { Principal } from '#src/base/caller/principal.ts';
import type { AppError } from '#src/base/errors/errors.ts';
import { DEFAULT_CALL_S, type FunctionResult, type UiValuesResult } from '#src/contract/wire/interaction.ts';
import { OPERATIONS } from '#src/contract/wire/operations/table.ts';
import type { ElementCalls } from '#src/notebook/requests/element-calls.ts';
import type { NotebookEdits } from '#src/notebook/requests/notebook-edits.ts';
import type { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import { defer, ok } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

const MAX_BODY_BYTES = 16 * 1024 * 1024;

const REFUSALS = [
  'session_busy',
  'session_not_ready',
  'session_closed',
  'session_failed',
  'at_capacity',
  'quota_exceeded',
  'unavailable',
] as const;

const IN_TURN =
  'The request waits up to 30 seconds until the session is ready and earlier requests of this kind have begun. ' +
  'After that time the response is 409 `session_busy` or `session_not_ready`. Up to 100 requests may wait. During the work, the session is ' +
  '`busy`. If the work takes long, the server sends the status 200 early, and then white space at intervals.';

interface SentToSession {
  readonly principal: Principal;
  readonly params: { readonly sessionId: string };
  readonly signal: AbortSignal;
}

/** Open notebooks as people use them in a page: their cells change without a run, and their UI elements are used. */
export function liveNotebookRoutes(
  edits: NotebookEdits,
  elements: ElementCalls,
  sessions: NotebookSessions,
): readonly Route[] {
  const whenAwake = (request: SentToSession) =>
    sessions.whenAwake(request.principal.workspaceId, request.params.sessionId, () => request.signal);
  return [
    defineRoute({
      ...OPERATIONS.changeCells,
      summary: 'Change the cells of an open notebook',
      description:
        'Creates, deletes and moves cells, and changes their code, names and settings: all changes of the ' +
        'request, or none. The changes are stored when the response is sent. Nothing runs: changed cells and ' +
        'those that depend on them become stale. The session may be busy: running work continues with the ' +
        'code that it started with, and the kernel gets the changes before its next work. All followers ' +
        'see the changes, and an agent has to read a changed cell again before editing it. When a cell has ' +
        'another `version` than its change names, or the notebook another `updatedAt` than ' +
        '`expectedUpdatedAt`, the response is 409 `stale_update` and nothing has changed. The error contains ' +
        'the present `updatedAt` and `cells`. Without a version, the last change of a cell wins. A session ' +
        'that sleeps is woken.',
      tags: ['Live editing'],
      access: { action: 'session.edit' },
      bodyLimitBytes: MAX_BODY_BYTES,
      errors: [
        'unknown_cell',
        'duplicate_cell',
        'stale_update',
        'session_not_editable',
        'session_closed',
        'at_capacity',
        'quota_exceeded',
      ],
      handle: async ({ principal, params, body }) =>
        ok(await edits.change(principal, params.sessionId, body)),
    }),
    defineRoute({
      ...OPERATIONS.setUiValues,
      summary: 'Set values of UI elements',
      description:
        'Gives sliders, dropdowns and other elements new values, as a person does in a page. The cells that depend on the elements run; ' +
        'their outputs are kept and sent as events, without a record of a run. The response is sent when these cells have ended. Pages show the new ' +
        `values. The session may be in either mode. Disconnecting does not stop work that has begun. ${IN_TURN}`,
      tags: ['Live editing'],
      access: { action: 'session.interact' },
      errors: [...REFUSALS],
      prepare: whenAwake,
      async handle({ principal, params: { sessionId }, body, signal }) {
        const { result } = await elements.setValues(principal, sessionId, body, signal);
        return defer(result, (error) => unfinishedValues(sessionId, error));
      },
    }),
    defineRoute({
      ...OPERATIONS.callFunction,
      summary: 'Call a function of a UI element',
      description:
        "Calls a function that an element has registered, as marimo's page does. Such functions are the pages and the search of a table, the files of a browser, and " +
        'functions of your own widget. When the function fails, the response is 200 with `success: false`. The function may run for `timeoutS`, and ' +
        `disconnecting interrupts it. The result may have 4 MiB as JSON. ${IN_TURN}`,
      tags: ['Live editing'],
      access: { action: 'session.interact' },
      errors: [...REFUSALS],
      prepare: whenAwake,
      async handle({ principal, params, body, signal }) {
        const { result } = await elements.callFunction(
          principal,
          params.sessionId,
          { ...body, timeoutS: body.timeoutS ?? DEFAULT_CALL_S },
          signal,
        );
        return defer(result, unfinishedCall);
      },
    }),
    defineRoute({
      ...OPERATIONS.completeCode,
      summary: 'Complete code',
      description:
        'Returns the names that may follow the code of a cell up to the cursor, based on the other cells ' +
        'and the values of the notebook. The session may be busy. The requests of a session are answered ' +
        'one by one, and up to 100 may wait. If the kernel takes more than 30 seconds, the list is empty. ' +
        'The list has up to 1,000 options, with 1 MiB of text.',
      tags: ['Live editing'],
      access: { action: 'session.interact' },
      errors: [...REFUSALS],
      prepare: whenAwake,
      handle: async ({ principal, params, body, signal }) =>
        ok(await elements.complete(principal, params.sessionId, body, signal)),
    }),
  ];
}

/** Returns the result for values of UI elements whose work failed after status 200 was sent. */
function unfinishedValues(sessionId: string, { message }: AppError): UiValuesResult {
  return {
    sessionId,
    status: 'failed',
    cells: [],
    unknown: [],
    failures: [],
    error: { code: 'kernel_command_failed', message },
  };
}

/** Returns the result of a call that failed after status 200 was sent. */
function unfinishedCall({ code, message }: AppError): FunctionResult {
  return { success: false, value: null, error: { type: code, message } };
}
