/** The main job, done with the client that openapi-generator makes as `typescript-fetch`. Prints the outcome. */

import {
  AgentSessionsApi,
  Configuration,
  DatasourcesApi,
  ExecutionEnvironmentsApi,
  type ExecutionRequest,
  ExecutionsApi,
  LiveEditingApi,
  NotebookSessionsApi,
  NotebooksApi,
  ResponseError,
  type Run,
  RunsApi,
  type SubmittedNotebookRun,
} from './generated/index.js';

const { BASE_URL: basePath = '', TOKEN = '', WORKSPACE = '' } = process.env;
const configuration = new Configuration({ basePath, accessToken: TOKEN, apiKey: WORKSPACE });
const notebooks = new NotebooksApi(configuration);
const environments = new ExecutionEnvironmentsApi(configuration);
const sessions = new NotebookSessionsApi(configuration);
const executions = new ExecutionsApi(configuration);
const agents = new AgentSessionsApi(configuration);
const datasources = new DatasourcesApi(configuration);

async function runOf(runId: string): Promise<Run> {
  for (;;) {
    const run = await new RunsApi(configuration).getRun({ runId });
    if (run.status !== 'running') return run;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const notebook = await notebooks.createNotebook({
  newNotebook: {
    serialization: {
      cells: [
        { cellId: 'numbers', code: 'numbers = [1, 2, 3]' },
        { cellId: 'total', code: 'total = sum(numbers)\ntotal', options: { hide_code: true } },
      ],
    },
    variables: { REGION: 'eu' },
  },
});
const sessionId = notebook.id;
const { environmentId } = await environments.createExecutionEnvironment();
await sessions.openNotebookSession({ openNotebookSession: { notebookId: notebook.id, environmentId } });
while ((await sessions.getNotebookSession({ sessionId })).status !== 'ready')
  await new Promise((resolve) => setTimeout(resolve, 20));

const requests: readonly ExecutionRequest[] = [
  { type: 'cells', cells: [{ cellId: 'total' }] },
  { type: 'all', cacheMode: 'no-cache' },
];
const runs: SubmittedNotebookRun[] = [];
for (const executionRequest of requests) {
  const run = await executions.submitExecution({ sessionId, wait: 60, executionRequest });
  if (run.status === 'running') throw new Error(`${run.runId} takes longer than a minute`);
  runs.push(run);
}
const pages: (string | undefined)[] = [];
for (let after: string | null | undefined; after !== null; ) {
  const page = await executions.listExecutions({
    sessionId,
    limit: 1,
    ...(after === undefined ? {} : { after }),
  });
  pages.push(page.items[0]?.id);
  after = page.nextCursor;
}
const code = await new LiveEditingApi(configuration).executeCode({
  serviceSessionId: sessionId,
  codeRequest: { code: 'print(total * 2)' },
});

await agents.openAgentSession({ openAgentSession: { environmentId, notebookSessionId: sessionId } });
const prompted = await agents.submitPrompt({ sessionId, promptRequest: { prompt: 'Are you there?' } });
const answered = await runOf(prompted.runId);

const slug = 'made-by-typescript-fetch';
await datasources.createDatasource({
  newDatasource: { slug, connection: { kind: 'sqlite', path: 'sales.sqlite' }, name: null },
});
const tested = await datasources.testDatasource({ slug });
const deleted = await datasources.deleteDatasource({ slug });

const missing = await notebooks.getNotebook({ notebookId: 'nb_0' }).then(
  () => undefined,
  async (error: unknown) => (error instanceof ResponseError ? (await error.response.json()).code : error),
);
const closed = await sessions.closeNotebookSession({ sessionId });
const closedEnvironment = await environments.closeExecutionEnvironment({ environmentId });

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
    missing,
    closed: [closed.status, closedEnvironment.status],
  }),
);
