/** Examples of notebooks, their sessions, runs, events and files. */
import type { EventTicket } from '#src/wire/event-ticket.ts';
import type { NotebookStreamEvent } from '#src/wire/events.ts';
import type { NotebookSessionSummary } from '#src/wire/lists.ts';
import type { Notebook, NotebookSecret, NotebookSummary } from '#src/wire/notebook.ts';
import type {
  AgentRun,
  Cancellation,
  NotebookRun,
  RunCancellationResult,
  SubmittedAgentRun,
  SubmittedNotebookRun,
} from '#src/wire/run.ts';
import type { CodeResult, Environment, NotebookSession, SessionInterruption } from '#src/wire/session.ts';
import { AT, ENVIRONMENT, EVENT, LATER, NOTEBOOK, page, RUN, times, USER } from './example-values.ts';

const cell = { cell_id: 'total', code: 'total = sum([1, 2, 3])\ntotal', options: {} };
const notebook: Notebook = {
  id: NOTEBOOK,
  title: 'Sales of January',
  createdBy: USER,
  ...times,
  serialization: { version: '1', app: { options: {} }, cells: [cell], valid: true, ui_values: {} },
  datasourceSlugs: ['sales'],
  variables: { REGION: 'eu' },
};
const notebookSummary: NotebookSummary = {
  id: NOTEBOOK,
  title: notebook.title,
  cellCount: 1,
  datasourceSlugs: ['sales'],
  createdBy: USER,
  ...times,
};
const notebookSecret: NotebookSecret = { name: 'API_KEY', updatedBy: 'ada@example.com', updatedAt: AT };
const environment: Environment = {
  environmentId: ENVIRONMENT,
  status: 'open',
  notebookSessionId: NOTEBOOK,
  agentSessionIds: [],
  ...times,
};
const session: NotebookSession = {
  sessionId: NOTEBOOK,
  notebookId: NOTEBOOK,
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
  cells: [{ cellId: 'total', name: '_', status: 'stale', stale: true }],
  kernel: { confinement: 'full' },
  error: null,
  ...times,
};
const sessionSummary: NotebookSessionSummary = {
  sessionId: NOTEBOOK,
  notebookId: NOTEBOOK,
  title: notebook.title,
  environmentId: ENVIRONMENT,
  mode: 'edit',
  status: 'ready',
  currentRunId: null,
  ...times,
};
const cancellation: Cancellation = { runId: RUN, status: 'cancelling' };
const interruption: SessionInterruption = { sessionId: NOTEBOOK, status: 'interrupting', runId: RUN };
const cancelled: RunCancellationResult = { runId: RUN, status: 'cancelling', error: null };
const run: NotebookRun = {
  id: RUN,
  kind: 'notebook',
  sessionId: NOTEBOOK,
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
  sessionId: NOTEBOOK,
  runId: RUN,
  time: LATER,
  data: { runId: RUN, status: 'completed', error: null },
};
const eventTicket: EventTicket = {
  ticket: 'example',
  url: `/api/v3/notebook-sessions/${NOTEBOOK}/events?ticket=example`,
  expiresAt: LATER,
};
const file = {
  path: 'data/sales.csv',
  type: 'file',
  bytes: 18_204,
  size: 18_204,
  updatedAt: '2026-01-31T12:00:00.000Z',
  etag: '"1a2b-e1o-hq3z-hq40"',
};

export const NOTEBOOKS_EXAMPLES = {
  AgentRun: prompt,
  AgentRunPage: page(prompt),
  CancellationAccepted: cancellation,
  SessionInterruption: interruption,
  RunCancellationResults: { items: [cancelled] },
  CodeResult: codeResult,
  Environment: environment,
  EnvironmentPage: page(environment),
  EventTicket: eventTicket,
  FileEntry: file,
  FilePage: page(file),
  Notebook: notebook,
  NotebookPage: page(notebookSummary),
  NotebookSecret: notebookSecret,
  NotebookSecretList: { items: [notebookSecret] },
  NotebookSession: session,
  NotebookSessionPage: page(sessionSummary),
  NotebookStreamEvent: notebookEvent,
  NotebookRun: run,
  NotebookRunPage: page(run),
  Run: run,
  RunPage: page(run),
  SubmittedAgentRun: { runId: RUN, lastEventId: EVENT, ...prompt } satisfies SubmittedAgentRun,
  SubmittedNotebookRun: { runId: RUN, lastEventId: EVENT, ...run } satisfies SubmittedNotebookRun,
};
