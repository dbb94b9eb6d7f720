/** An example of what each operation returns, by the name of its schema. The compiler holds them to the wire types. */
import type { ActorDetail, ActorPage, Chart } from '#src/wire/actor.ts';
import type { AgentSession, AgentSessionGrant, AgentSessionSummary } from '#src/wire/agent.ts';
import type { AuditEntry } from '#src/wire/audit.ts';
import type { ConnectionTest, Datasource, DatasourceGrant } from '#src/wire/datasource.ts';
import type { EventTicket } from '#src/wire/event-ticket.ts';
import type { AgentStreamEvent, NotebookStreamEvent } from '#src/wire/events.ts';
import type { NotebookSessionSummary } from '#src/wire/finding.ts';
import type { AccessToken, CreatedAccessToken, Member, OwnAccount, Workspace } from '#src/wire/identity.ts';
import type { ModelKey, ModelList, ModelTest } from '#src/wire/models.ts';
import type { Notebook, NotebookSummary } from '#src/wire/notebook.ts';
import type { Health, KeyList, Readiness } from '#src/wire/operations.ts';
import type { Cancellation, Run, SubmittedRun } from '#src/wire/run.ts';
import type { CodeResult, Environment, NotebookSession } from '#src/wire/session.ts';
import type { Page } from '#src/wire/shape.ts';

const NOTEBOOK = 'nb_01k6gq0000aaaaaaaaaaaaaaaa';
const ENVIRONMENT = 'env_01k6gq0000bbbbbbbbbbbbbbbb';
const RUN = 'run_01k6gq0000cccccccccccccccc';
const WORKSPACE = 'ws_01k6gq0000dddddddddddddddd';
const CONVERSATION = 'conv_01k6gq0000eeeeeeeeeeeeeeee';
const [USER, COLLEAGUE] = ['ada@example.com', 'grace@example.com'];
const AT = '2026-01-31T12:00:00.000Z';
const LATER = '2026-01-31T12:00:01.250Z';
const times = { createdAt: AT, updatedAt: LATER };
const cell = { cell_id: 'total', code: 'total = sum([1, 2, 3])\ntotal', options: {} };

/** Returns the only page of a list. */
function page<Item>(...items: Item[]): Page<Item> {
  return { items, nextCursor: null };
}

const notebook: Notebook = {
  id: NOTEBOOK,
  title: 'Sales of January',
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
  ...times,
};

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
  status: 'ready',
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

const submitted: SubmittedRun = { runId: RUN, sessionId: NOTEBOOK, status: 'running' };
const cancellation: Cancellation = { runId: RUN, status: 'cancelling' };

const run: Run = {
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
  createdAt: AT,
  startedAt: AT,
  finishedAt: LATER,
};

const codeResult: CodeResult = {
  success: true,
  output: { mimetype: 'text/plain', data: '2' },
  stdout: '',
  stderr: '',
  media: [],
  errors: [],
};

const conversation: AgentSessionSummary = {
  sessionId: CONVERSATION,
  environmentId: ENVIRONMENT,
  notebookSessionId: null,
  ownerId: USER,
  status: 'ready',
  config: { model: 'anthropic/claude-sonnet-4-5', instructions: null },
  context: { datasourceSlugs: ['sales'] },
  currentRunId: null,
  ...times,
};
const entry = {
  id: 'ent_01k6gq0000ffffffffffffffff',
  role: 'user',
  content: [{ type: 'text', text: 'Plot the sales of last month.' }],
  runId: RUN,
  createdAt: AT,
} as const;
const agentSession: AgentSession = { ...conversation, entries: [entry] };
const agentSessionGrant: AgentSessionGrant = { userId: COLLEAGUE, grantedBy: USER, createdAt: AT };

const models: ModelList = {
  defaultModel: 'anthropic/claude-sonnet-4-5',
  items: [
    { provider: 'anthropic', usable: true, source: 'workspace', models: ['anthropic/claude-sonnet-4-5'] },
  ],
};
const modelTest: ModelTest = {
  ok: true,
  model: 'anthropic/claude-sonnet-4-5',
  message: 'It answered.',
  elapsedMs: 640,
};
const modelKey: ModelKey = { provider: 'anthropic', updatedBy: USER, updatedAt: AT };

const datasource: Datasource = {
  id: 'ds_01k6gq0000gggggggggggggggg',
  slug: 'sales',
  kind: 'postgres',
  name: 'Sales',
  revision: 1,
  configured: true,
  embedded: false,
};
const connectionTest: ConnectionTest = { ok: true, message: 'The connection works.', elapsedMs: 12.4 };
const datasourceGrant: DatasourceGrant = { subject: 'role:editor', grantedBy: USER, createdAt: AT };

const workspace: Workspace = { id: WORKSPACE, name: 'Research', createdAt: AT };
const member: Member = { userId: USER, role: 'owner', name: 'Ada', ...times };
const token: AccessToken = {
  id: 'tok_01k6gq0000hhhhhhhhhhhhhhhh',
  name: 'nightly',
  userId: USER,
  workspaceId: WORKSPACE,
  scopes: ['workspaceRuntime:connect', 'datasource:read'],
  createdAt: AT,
  createdBy: USER,
  expiresAt: null,
};
const createdToken: CreatedAccessToken = { ...token, token: 'trp_example' };
const account: OwnAccount = {
  user: { id: USER },
  token: {
    id: token.id,
    name: token.name,
    workspaceId: WORKSPACE,
    scopes: token.scopes,
    createdAt: AT,
    expiresAt: null,
  },
  workspaces: [{ id: WORKSPACE, name: 'Research', role: 'owner' }],
  nextCursor: null,
};

const audited: AuditEntry = {
  id: 'aud_01k6gq0000jjjjjjjjjjjjjjjj',
  at: AT,
  userId: USER,
  tokenId: token.id,
  action: 'member.add',
  target: COLLEAGUE,
  outcome: 'done',
  detail: 'editor',
  address: '192.0.2.7',
  requestId: 'req_0f3c1a9b2e4d1',
};
const keys: KeyList = { items: [{ id: 'k1', active: true, sealed: 3 }] };
const actor: ActorPage['items'][number] = {
  kind: 'run',
  id: RUN,
  machine: 'run',
  presence: 'live',
  state: { running: 'cancelling' },
  path: 'running.cancelling',
  since: AT,
  revision: 1,
  links: [{ kind: 'notebook-session', id: NOTEBOOK }],
  lastEvents: [{ type: 'cancel', at: AT }],
};
const actors: ActorPage = {
  items: [actor],
  nextCursor: null,
  counts: [{ kind: 'run', state: 'running.cancelling', count: 1 }],
};
const { lastEvents: _, ...shownActor } = actor;
const actorDetail: ActorDetail = {
  ...shownActor,
  createdAt: AT,
  context: { kind: 'notebook' },
  trail: [{ at: AT, type: 'cancel', from: 'running.active', to: 'running.cancelling' }],
  takes: ['cancel', 'finish', 'restored'],
  refuses: [
    {
      type: 'delete',
      code: 'run_in_progress',
      title: 'The run has not ended',
      advice: 'Cancel it, or wait until it has ended.',
    },
  ],
};
const chart: Chart = {
  machine: 'environment',
  version: '0f3c1a9b2e4d1a77',
  root: {
    id: 'environment',
    name: 'environment',
    type: 'compound',
    initial: 'open',
    tags: [],
    refuses: {},
    runs: [],
    transitions: [],
    states: [],
  },
};
const health: Health = { status: 'ok' };
const readiness: Readiness = { ready: true };

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
const agentEvent: AgentStreamEvent = {
  type: 'text-delta',
  sessionId: CONVERSATION,
  runId: RUN,
  time: AT,
  data: { entryId: entry.id, text: 'The sales ' },
};

const file = {
  path: 'data/sales.csv',
  type: 'file',
  size: 18_204,
  updatedAt: '2026-01-31T12:00:00.000Z',
  etag: '"1a2b-e1o-hq3z-hq40"',
};

export const RESPONSE_EXAMPLES: Readonly<Record<string, unknown>> = {
  AccessToken: token,
  FileEntry: file,
  FilePage: page(file),
  AccessTokenPage: page(token),
  ActorDetail: actorDetail,
  ActorPage: actors,
  AgentEntryPage: page(entry),
  AgentSession: agentSession,
  AgentSessionGrant: agentSessionGrant,
  AgentSessionGrantList: { items: [agentSessionGrant] },
  AgentSessionPage: page(conversation),
  AgentSessionSummary: conversation,
  AgentStreamEvent: agentEvent,
  AuditPage: page(audited),
  CancellationAccepted: cancellation,
  Chart: chart,
  CodeResult: codeResult,
  ConnectionTest: connectionTest,
  CreatedAccessToken: createdToken,
  Datasource: datasource,
  DatasourceGrant: datasourceGrant,
  DatasourceGrantList: { items: [datasourceGrant] },
  DatasourcePage: page(datasource),
  DeletedDatasource: { slug: 'sales', deleted: true },
  Environment: environment,
  EnvironmentPage: page(environment),
  EventTicket: eventTicket,
  Health: health,
  KeyList: keys,
  Member: member,
  MemberPage: page(member),
  ModelKey: modelKey,
  ModelList: models,
  ModelTest: modelTest,
  Notebook: notebook,
  NotebookPage: page(notebookSummary),
  NotebookSession: session,
  NotebookSessionPage: page(sessionSummary),
  NotebookStreamEvent: notebookEvent,
  OwnAccount: account,
  Readiness: readiness,
  Run: run,
  RunPage: page(run),
  SubmittedRun: submitted,
  Workspace: workspace,
  WorkspacePage: page(workspace),
};
