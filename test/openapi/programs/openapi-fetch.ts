/** The main job, done with the types of openapi-typescript and openapi-fetch. Prints the outcome. */
import createClient from 'openapi-fetch';
import type { components, paths } from './generated/schema.js';

type Schemas = components['schemas'];

const { BASE_URL = '', TOKEN = '', WORKSPACE = '' } = process.env;
const api = createClient<paths>({
  baseUrl: BASE_URL,
  headers: { Authorization: `Bearer ${TOKEN}`, 'Service-Workspace-Id': WORKSPACE },
});

function must<T>({ data, error }: { data?: T; error?: unknown }): T {
  if (data === undefined) throw new Error(`refused: ${JSON.stringify(error)}`);
  return data;
}

async function until<T>(read: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (isDone(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const runOf = (runId: string): Promise<Schemas['Run']> =>
  until(
    async () => must(await api.GET('/api/v3/runs/{runId}', { params: { path: { runId } } })),
    ({ status }) => status !== 'running',
  );

const notebook = must(
  await api.POST('/api/v3/notebooks', {
    body: {
      serialization: {
        cells: [
          { cell_id: 'numbers', code: 'numbers = [1, 2, 3]' },
          { cell_id: 'total', code: 'total = sum(numbers)\ntotal', options: { hide_code: true } },
        ],
      },
      variables: { REGION: 'eu' },
    },
  }),
);
const { environmentId } = must(await api.POST('/api/v3/execution-environments'));
must(await api.POST('/api/v3/notebook-sessions', { body: { notebookId: notebook.id, environmentId } }));
const path = { sessionId: notebook.id };
await until(
  async () => must(await api.GET('/api/v3/notebook-sessions/{sessionId}', { params: { path } })),
  ({ status }) => status === 'ready',
);

const executions: readonly Schemas['ExecutionRequest'][] = [
  { type: 'cells', cells: [{ cellId: 'total' }] },
  { type: 'all', cacheMode: 'no-cache' },
];
const runs: Schemas['SubmittedNotebookRun'][] = [];
for (const body of executions) {
  const answer = await api.POST('/api/v3/notebook-sessions/{sessionId}/executions', {
    params: { path, query: { wait: 60 } },
    body,
  });
  const run = must(answer);
  if (run.status === 'running') throw new Error(`${run.runId} takes longer than a minute`);
  runs.push(run);
}
const pages: (string | undefined)[] = [];
for (let after: string | null | undefined; after !== null; ) {
  const query = { limit: 1, ...(after === undefined ? {} : { after }) };
  const page = must(
    await api.GET('/api/v3/notebook-sessions/{sessionId}/executions', { params: { path, query } }),
  );
  pages.push(page.items[0]?.id);
  after = page.nextCursor;
}
const code = must(
  await api.POST('/api/cee/kernel/execute', {
    params: { header: { 'Service-Session-Id': notebook.id } },
    body: { code: 'print(total * 2)' },
  }),
);

must(await api.POST('/api/v3/agent-sessions', { body: { environmentId, notebookSessionId: notebook.id } }));
const prompt = await api.POST('/api/v3/agent-sessions/{sessionId}/runs', {
  params: { path },
  body: { prompt: 'Are you there?' },
});
const prompted = must(prompt);
const answered = await runOf(prompted.runId);

const slug = 'made-by-openapi-fetch';
const connection: Schemas['DatasourceConnection'] = { kind: 'sqlite', path: 'sales.sqlite' };
must(await api.POST('/api/v3/datasources', { body: { slug, connection, name: null } }));
const tested = must(await api.POST('/api/v3/datasources/{slug}/test', { params: { path: { slug } } }));
const deleted = must(await api.DELETE('/api/v3/datasources/{slug}', { params: { path: { slug } } }));

const missing = await api.GET('/api/v3/notebooks/{notebookId}', { params: { path: { notebookId: 'nb_0' } } });
const closed = must(await api.DELETE('/api/v3/notebook-sessions/{sessionId}', { params: { path } }));
const environment = must(
  await api.DELETE('/api/v3/execution-environments/{environmentId}', { params: { path: { environmentId } } }),
);

process.stdout.write(
  JSON.stringify({
    cells: runs.map(({ output }) =>
      (output?.parts ?? []).flatMap((part) =>
        part.type === 'cell-result' ? [part.cellId, part.status] : [],
      ),
    ),
    pages: pages.map((id) => runs.findIndex((run) => run.id === id)),
    inputs: [
      ...runs.map(({ input }) => input.type),
      answered.kind === 'agent' ? answered.input.prompt : undefined,
    ],
    printed: code.stdout,
    answer: (answered.output?.parts ?? []).flatMap((part) =>
      part.type === 'final-answer' ? [part.markdown] : [],
    ),
    tested: tested.ok,
    deleted: deleted.deleted,
    missing: missing.error?.code,
    closed: [closed.status, environment.status],
  }),
);
