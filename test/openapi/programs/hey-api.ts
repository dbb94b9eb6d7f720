/** The main job, done with the client that hey-api makes. Prints the outcome. */

import { client } from './generated/client.gen.js';
import {
  closeExecutionEnvironment,
  closeNotebookSession,
  createDatasource,
  createExecutionEnvironment,
  createNotebook,
  type DatasourceConnection,
  deleteDatasource,
  type ExecutionRequest,
  executeCode,
  followNotebookSession,
  getNotebook,
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
client.setConfig({
  baseUrl: BASE_URL,
  auth: ({ scheme }) => (scheme === 'bearer' ? TOKEN : WORKSPACE),
});
const throwOnError = true;

async function runOf(runId: string): Promise<Run> {
  for (;;) {
    const { data } = await getRun({ path: { runId }, throwOnError });
    if (data.status !== 'running') return data;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const { data: notebook } = await createNotebook({
  throwOnError,
  body: {
    serialization: {
      cells: [
        { cell_id: 'numbers', code: 'numbers = [1, 2, 3]' },
        { cell_id: 'total', code: 'total = sum(numbers)\ntotal', options: { hide_code: true } },
      ],
    },
    variables: { REGION: 'eu' },
  },
});
const environment = await createExecutionEnvironment({ throwOnError });
const { environmentId } = environment.data;
await openNotebookSession({ throwOnError, body: { notebookId: notebook.id, environmentId } });
const path = { sessionId: notebook.id };
const events: string[] = [];
const { stream } = await followNotebookSession({ path });
for await (const event of stream) {
  if (!event) continue; // the stream of a closed session is 204, which has no events
  events.push(event.type);
  if (event.type === 'session.status' && event.data.status === 'ready') break;
}

const executions: readonly ExecutionRequest[] = [
  { type: 'cells', cells: [{ cellId: 'total' }] },
  { type: 'all', cacheMode: 'no-cache' },
];
const runs: SubmittedNotebookRun[] = [];
for (const body of executions) {
  const { data: run } = await submitExecution({ throwOnError, path, query: { wait: 60 }, body });
  if (run.status === 'running') throw new Error(`${run.runId} takes longer than a minute`);
  runs.push(run);
}
const pages: (string | undefined)[] = [];
for (let after: string | null | undefined; after !== null; ) {
  const query = { limit: 1, ...(after === undefined ? {} : { after }) };
  const { data } = await listExecutions({ throwOnError, path, query });
  pages.push(data.items[0]?.id);
  after = data.nextCursor;
}
const { data: code } = await executeCode({
  throwOnError,
  headers: { 'Service-Session-Id': notebook.id },
  body: { code: 'print(total * 2)' },
});

await openAgentSession({ throwOnError, body: { environmentId, notebookSessionId: notebook.id } });
const { data: prompted } = await submitPrompt({ throwOnError, path, body: { prompt: 'Are you there?' } });
const answered = await runOf(prompted.runId);

const slug = 'made-by-hey-api';
const connection: DatasourceConnection = { kind: 'sqlite', path: 'sales.sqlite' };
await createDatasource({ throwOnError, body: { slug, connection, name: null } });
const { data: tested } = await testDatasource({ throwOnError, path: { slug } });
const { data: deleted } = await deleteDatasource({ throwOnError, path: { slug } });

const missing = await getNotebook({ path: { notebookId: 'nb_0' } });
const { data: closed } = await closeNotebookSession({ throwOnError, path });
const { data: closedEnvironment } = await closeExecutionEnvironment({
  throwOnError,
  path: { environmentId },
});

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
    closed: [closed.status, closedEnvironment.status],
    firstEvent: events[0],
  }),
);
