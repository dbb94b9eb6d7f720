/** The main job, done with the client that orval makes. Prints the outcome. */

import {
  closeExecutionEnvironment,
  closeNotebookSession,
  createDatasource,
  createExecutionEnvironment,
  createNotebook,
  deleteDatasource,
  type ExecutionRequest,
  executeCode,
  getNotebook,
  getNotebookSession,
  getRun,
  listExecutions,
  openAgentSession,
  openNotebookSession,
  type Run,
  type SubmittedNotebookRun,
  submitExecution,
  submitPrompt,
  testDatasource,
} from './generated/index.js';

const { BASE_URL = '', TOKEN = '', WORKSPACE = '' } = process.env;
// The functions of orval ask the origin of their page, and have no place for credentials.
const send = globalThis.fetch;
globalThis.fetch = (path, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${TOKEN}`);
  headers.set('service-workspace-id', WORKSPACE);
  return send(`${BASE_URL}${path}`, { ...init, headers });
};

/** Returns the response if its status says that it succeeded. */
function must<Response extends { readonly status: number }, Status extends Response['status']>(
  response: Response,
  ...expected: readonly Status[]
): Extract<Response, { readonly status: Status }> {
  if (!expected.some((status) => status === response.status)) throw new Error(JSON.stringify(response));
  return response as Extract<Response, { readonly status: Status }>;
}

async function runOf(runId: string): Promise<Run> {
  for (;;) {
    const { data } = must(await getRun(runId), 200);
    if (data.status !== 'running') return data;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const { data: notebook } = must(
  await createNotebook({
    serialization: {
      cells: [
        { cell_id: 'numbers', code: 'numbers = [1, 2, 3]' },
        { cell_id: 'total', code: 'total = sum(numbers)\ntotal', options: { hide_code: true } },
      ],
    },
    variables: { REGION: 'eu' },
  }),
  201,
);
const { environmentId } = must(await createExecutionEnvironment(), 201).data;
must(await openNotebookSession({ notebookId: notebook.id, environmentId }), 202);
while (must(await getNotebookSession(notebook.id), 200).data.status !== 'ready')
  await new Promise((resolve) => setTimeout(resolve, 20));

const executions: readonly ExecutionRequest[] = [
  { type: 'cells', cells: [{ cellId: 'total' }] },
  { type: 'all', cacheMode: 'no-cache' },
];
const runs: SubmittedNotebookRun[] = [];
for (const body of executions)
  runs.push(must(await submitExecution(notebook.id, body, { wait: 60 }), 200).data);
const pages: (string | undefined)[] = [];
for (let after: string | null | undefined; after !== null; ) {
  const query = { limit: 1, ...(after === undefined ? {} : { after }) };
  const { data } = must(await listExecutions(notebook.id, query), 200);
  pages.push(data.items[0]?.id);
  after = data.nextCursor;
}
const { data: code } = must(
  await executeCode({ code: 'print(total * 2)' }, { headers: { 'Service-Session-Id': notebook.id } }),
  200,
);

must(await openAgentSession({ environmentId, notebookSessionId: notebook.id }), 200, 201);
const prompted = must(await submitPrompt(notebook.id, { prompt: 'Are you there?' }), 200, 202);
const answered = await runOf(prompted.data.runId);

const slug = 'made-by-orval';
must(await createDatasource({ slug, connection: { kind: 'sqlite', path: 'sales.sqlite' }, name: null }), 201);
const { data: tested } = must(await testDatasource(slug), 200);
const { data: deleted } = must(await deleteDatasource(slug), 200);

const missing = must(await getNotebook('nb_0'), 404);
const { data: closed } = must(await closeNotebookSession(notebook.id), 200);
const { data: closedEnvironment } = must(await closeExecutionEnvironment(environmentId), 200);

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
    missing: missing.data.code,
    closed: [closed.status, closedEnvironment.status],
  }),
);
