/** Examples of notebooks, their sessions, runs, events and files. */
import type { ChangedCells } from '#src/contract/wire/cell-changes.ts';
import type { EventTicket } from '#src/contract/wire/event-ticket.ts';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Completions, FunctionResult, UiValuesResult } from '#src/contract/wire/interaction.ts';
import type { NotebookSessionSummary } from '#src/contract/wire/lists.ts';
import type {
  Notebook,
  NotebookSecret,
  NotebookSummary,
  NotebookVersion,
} from '#src/contract/wire/notebook.ts';
import type {
  AgentRun,
  Cancellation,
  NotebookRun,
  RunCancellationResult,
  SubmittedAgentRun,
  SubmittedNotebookRun,
} from '#src/contract/wire/run.ts';
import type {
  BrowserPage,
  CodeResult,
  Environment,
  NotebookSession,
  SessionInterruption,
} from '#src/contract/wire/session.ts';
import { AT, ENVIRONMENT, EVENT, LATER, NOTEBOOK_ID, RUN, times, USER } from './example-values.ts';

const cell = { cell_id: 'total', code: 'total = sum([1, 2, 3])\ntotal', options: {} };
const notebook: Notebook = {
  id: NOTEBOOK_ID,
  title: 'Sales of January',
  createdBy: USER,
  updatedBy: USER,
  ...times,
  serialization: { version: '1', app: { options: {} }, cells: [cell], valid: true, ui_values: {} },
  datasourceSlugs: ['sales'],
  variables: { REGION: 'eu' },
  url: `/n/${NOTEBOOK_ID}/`,
};
const notebookSummary: NotebookSummary = {
  id: NOTEBOOK_ID,
  title: notebook.title,
  cellCount: 1,
  datasourceSlugs: ['sales'],
  createdBy: USER,
  updatedBy: USER,
  ...times,
  url: notebook.url,
};
const version = { updatedBy: USER, title: notebook.title, cellCount: 1 };
const notebookVersions: readonly NotebookVersion[] = [
  { updatedAt: LATER, ...version, isCurrent: true },
  { updatedAt: AT, ...version, isCurrent: false },
];
const notebookSecret: NotebookSecret = { name: 'API_KEY', updatedBy: 'ada@example.com', updatedAt: AT };
const environment: Environment = {
  environmentId: ENVIRONMENT,
  status: 'open',
  notebookSessionId: NOTEBOOK_ID,
  agentSessionIds: [],
  ...times,
};
const session: NotebookSession = {
  sessionId: NOTEBOOK_ID,
  notebookId: NOTEBOOK_ID,
  environmentId: ENVIRONMENT,
  mode: 'edit',
  arguments: ['--month=3'],
  ttlS: null,
  idleTimeoutS: 3600,
  expiresAt: null,
  status: 'ready',
  startup: null,
  phases: { fork: 8.2, ready: 21.7 },
  currentRunId: null,
  cells: [{ cellId: 'total', name: '_', status: 'stale', stale: true, version: 1_769_860_800_000 }],
  kernel: { confinement: 'full' },
  error: null,
  ...times,
  url: notebook.url,
};
const sessionSummary: NotebookSessionSummary = {
  sessionId: NOTEBOOK_ID,
  notebookId: NOTEBOOK_ID,
  title: notebook.title,
  environmentId: ENVIRONMENT,
  mode: 'edit',
  status: 'ready',
  currentRunId: null,
  ...times,
  url: notebook.url,
};
const cancellation: Cancellation = { runId: RUN, status: 'cancelling' };
const interruption: SessionInterruption = { sessionId: NOTEBOOK_ID, status: 'interrupting', runId: RUN };
const cancelled: RunCancellationResult = { runId: RUN, status: 'cancelling', error: null };
const run: NotebookRun = {
  id: RUN,
  kind: 'notebook',
  sessionId: NOTEBOOK_ID,
  status: 'completed',
  input: { type: 'cells', cells: [{ cellId: 'total' }] },
  output: {
    stored: true,
    parts: [
      {
        type: 'cell-result',
        cellId: 'total',
        status: 'success',
        outputs: [{ mimetype: 'text/html', data: "<pre class='text-xs'>6</pre>", text: '6' }],
        console: [],
        durationMs: 3.1,
      },
    ],
  },
  error: null,
  createdBy: USER,
  createdAt: AT,
  startedAt: AT,
  finishedAt: LATER,
};
const prompt: AgentRun = {
  ...run,
  kind: 'agent',
  input: { prompt: 'What is the total?' },
  output: { stored: true, parts: [{ type: 'final-answer', markdown: 'It is 6.' }] },
};
const codeResult: CodeResult = {
  success: true,
  output: { mimetype: 'text/plain', data: '2' },
  stdout: '',
  stderr: '',
  media: [],
  errors: [],
};
const notebookEvent: NotebookStreamEvent = {
  type: 'run-status',
  sessionId: NOTEBOOK_ID,
  runId: RUN,
  time: LATER,
  data: { runId: RUN, status: 'completed', error: null },
};
const eventTicket: EventTicket = {
  ticket: 'example',
  url: `/api/v3/notebook-sessions/${NOTEBOOK_ID}/events?ticket=example`,
  expiresAt: LATER,
};
const browserPage: BrowserPage = {
  url: `/n/${NOTEBOOK_ID}/open/code.example`,
  access: 'edit',
  expiresAt: LATER,
};
const file = {
  path: 'data/sales.csv',
  type: 'file',
  bytes: 18_204,
  updatedAt: '2026-01-31T12:00:00.000Z',
  etag: '"1a2b-e1o-hq3z-hq40"',
};

const changedCells: ChangedCells = {
  sessionId: NOTEBOOK_ID,
  updatedAt: LATER,
  cells: [
    { cellId: 'total', version: 1_769_860_800_001 },
    { cellId: 'mean', version: 1_769_860_800_001 },
  ],
};

const uiValuesResult: UiValuesResult = {
  sessionId: NOTEBOOK_ID,
  status: 'completed',
  cells: [{ cellId: 'square', status: 'success' }],
  unknown: [],
  failures: [],
  error: null,
};
const functionResult: FunctionResult = { success: true, value: { total_rows: 3 }, error: null };
const completions: Completions = {
  prefixLength: 2,
  options: [{ name: 'sqrt', type: 'function', info: null }],
  isIncomplete: false,
};

export const NOTEBOOKS_EXAMPLES = {
  NotebookSummary: notebookSummary,
  NotebookSessionSummary: sessionSummary,
  RunCancellationResult: cancelled,
  AgentRun: prompt,
  CancellationAccepted: cancellation,
  SessionInterruption: interruption,
  CodeResult: codeResult,
  Environment: environment,
  BrowserPage: browserPage,
  ChangedCells: changedCells,
  Completions: completions,
  FunctionResult: functionResult,
  UiValuesResult: uiValuesResult,
  EventTicket: eventTicket,
  FileEntry: file,
  ImportedNotebook: notebook,
  Notebook: notebook,
  NotebookSecret: notebookSecret,
  NotebookVersionList: { items: notebookVersions },
  NotebookSession: session,
  NotebookStreamEvent: notebookEvent,
  NotebookRun: run,
  Run: run,
  SubmittedAgentRun: { runId: RUN, lastEventId: EVENT, ...prompt } satisfies SubmittedAgentRun,
  SubmittedNotebookRun: { runId: RUN, lastEventId: EVENT, ...run } satisfies SubmittedNotebookRun,
};
