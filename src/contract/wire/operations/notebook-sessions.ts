import { ChangeCellsSchema, ChangedCellsSchema } from '../cell-changes.ts';
import { NotebookStreamEventSchema } from '../events.ts';
import {
  CallFunctionSchema,
  CompleteCodeSchema,
  CompletionsSchema,
  FunctionResultSchema,
  SetUiValuesSchema,
  UiValuesResultSchema,
} from '../interaction.ts';
import { NotebookSessionListQuery, NotebookSessionSummarySchema, SessionRunsQuery } from '../lists.ts';
import { ExecutionRequestSchema, NotebookRunSchema, SubmittedNotebookRunSchema, WaitQuery } from '../run.ts';
import {
  BrowserPageSchema,
  CodeRequestSchema,
  CodeResultSchema,
  NotebookSessionSchema,
  OpenBrowserPageSchema,
  OpenNotebookSessionSchema,
  SessionInterruptionSchema,
} from '../session.ts';
import { EmptyBodySchema, pageSchema } from '../shape.ts';
import { declareOperations } from './operation.ts';
import {
  ASSET_RESPONSES,
  CONTENT_HEADERS,
  EVENT_TICKET,
  STREAM_HEADERS,
  StreamQuery,
  streamResponses,
  submittedResponses,
} from './parts.ts';

/** Notebook sessions: their life, their executions, and code outside of their cells. */
export const NOTEBOOK_SESSION_OPERATIONS = declareOperations({
  executeCode: {
    headers: { 'service-session-id': 'The id of the notebook session.' },
    requiredHeaders: ['service-session-id'],
    body: CodeRequestSchema,
    responses: { 200: { description: 'The result of the code.', schema: CodeResultSchema } },
  },
  listNotebookSessions: {
    query: NotebookSessionListQuery,
    responses: {
      200: {
        description: 'A page of sessions.',
        schema: pageSchema('NotebookSessionPage', NotebookSessionSummarySchema),
      },
    },
  },
  openNotebookSession: {
    body: OpenNotebookSessionSchema,
    responses: {
      202: {
        description: 'The session is starting.',
        schema: NotebookSessionSchema,
        headers: { location: 'The path of the session.' },
      },
    },
  },
  getNotebookSession: {
    responses: { 200: { description: 'The session.', schema: NotebookSessionSchema } },
  },
  closeNotebookSession: {
    responses: { 200: { description: 'The closed session.', schema: NotebookSessionSchema } },
  },
  createNotebookEventTicket: {
    ...EVENT_TICKET,
  },
  followNotebookSession: {
    headers: STREAM_HEADERS,
    query: StreamQuery,
    responses: streamResponses(NotebookStreamEventSchema),
  },
  getNotebookSessionAsset: { headers: CONTENT_HEADERS, responses: ASSET_RESPONSES },
  listExecutions: {
    query: SessionRunsQuery,
    responses: {
      200: { description: 'A page of runs.', schema: pageSchema('NotebookRunPage', NotebookRunSchema) },
    },
  },
  submitExecution: {
    body: ExecutionRequestSchema,
    query: WaitQuery,
    responses: submittedResponses(SubmittedNotebookRunSchema),
  },
  hibernateNotebookSession: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The session, without a kernel.', schema: NotebookSessionSchema } },
  },
  interruptNotebookSession: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: {
      200: { description: 'Nothing ran in the session.', schema: SessionInterruptionSchema },
      202: {
        description: 'The interruption has begun.',
        schema: SessionInterruptionSchema,
        headers: { location: 'The path of the session.' },
      },
    },
  },
  changeCells: {
    body: ChangeCellsSchema,
    responses: { 200: { description: 'The changes are made and stored.', schema: ChangedCellsSchema } },
  },
  setUiValues: {
    body: SetUiValuesSchema,
    responses: {
      200: {
        description: 'The values are set, and the cells that depend on them have run.',
        schema: UiValuesResultSchema,
      },
    },
  },
  callFunction: {
    body: CallFunctionSchema,
    responses: { 200: { description: 'The result of the function.', schema: FunctionResultSchema } },
  },
  completeCode: {
    body: CompleteCodeSchema,
    responses: { 200: { description: 'The completions.', schema: CompletionsSchema } },
  },
  createNotebookPage: {
    body: OpenBrowserPageSchema,
    responses: {
      201: {
        description: 'The address of the page.',
        schema: BrowserPageSchema,
        headers: { location: 'The address of the page.' },
      },
    },
  },
  wakeNotebookSession: {
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 200: { description: 'The session.', schema: NotebookSessionSchema } },
  },
});
