import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startOtlpReceiver } from '#test/support/stand-ins/otlp-receiver.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const EXECUTIONS = 'POST /api/v3/notebook-sessions/:sessionId/executions';
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`;

const receiver = await startOtlpReceiver(test);
const model = await startScriptedModel(test);
const settings = {
  TROUPE_WORKERS: '1', // with several workers, each worker that a request passes through has a span of its own
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
};
const traced = await startServer(test, {
  ...settings,
  TROUPE_OTLP_URL: receiver.url,
  TROUPE_TRACE_SAMPLE_PERCENT: '0',
  TROUPE_LOG_LEVEL: 'debug',
});
const plain = await startServer(test, settings);

type Server = typeof traced;

/** Submits an execution of all cells with a header. Returns the run when it has ended. */
async function execute({ client, request }: Server, notebookId: string, traceparent: string) {
  const answer = await request('POST', `/api/v3/notebook-sessions/${notebookId}/executions`, {
    headers: { traceparent, 'content-type': 'application/json' },
    body: JSON.stringify({ type: 'all' }),
  });
  assert.equal(answer.status, 202);
  return client.waitForRun(Object(answer.body).runId);
}

const ENVIRONMENT = 'import os\nprint(os.environ.get("TRACEPARENT", "none"))';
const STATEMENT =
  'from troupe import datasource\ncursor = datasource("traced").cursor()\ncursor.execute("SELECT 1")\nprint(cursor.fetchall())';
const CELLS = {
  environment: ENVIRONMENT,
  query: `import sqlite3\nsqlite3.connect("traced.db").execute("CREATE TABLE IF NOT EXISTS t (n)")\n${STATEMENT}`,
};
const CODE = `${ENVIRONMENT}\n${STATEMENT}`;

test('a trace goes from the request through the run to the kernel and its statements', async () => {
  const { client } = traced;
  await client.datasources.create({ slug: 'traced', connection: { kind: 'sqlite', path: 'traced.db' } });
  const notebook = await openNotebook(traced, CELLS, { datasourceSlugs: ['traced'] });
  const run = await execute(traced, notebook.id, TRACEPARENT);
  const request = await receiver.spanNamed(TRACE, EXECUTIONS);
  const ran = await receiver.spanNamed(TRACE, 'run notebook');
  assert.deepEqual([request.parentSpanId, request.kind], [SPAN, 2]);
  assert.equal(ran.parentSpanId, request.spanId);
  const printed = JSON.stringify(run.output);
  assert.ok(printed.includes(`00-${TRACE}-${ran.spanId}-01`), 'code finds the trace in its environment');
  const query = receiver.spans.find(({ traceId, name }) => traceId === TRACE && name.startsWith('query '));
  assert.deepEqual([query?.parentSpanId, query?.kind], [ran.spanId, 3], printed);
  assert.ok(
    traced.log.some(({ traceId }) => traceId === TRACE),
    'lines of the log name the trace',
  );
  assert.deepEqual(receiver.complaints, []);
  await execute(traced, notebook.id, '');
  assert.ok(
    !receiver.spans.some(({ traceId }) => traceId !== TRACE),
    'nothing is traced that nobody asked for',
  );
  await notebook.close();
});

test("a prompt, its tools and its questions to the model belong to the trace, and the provider gets the trace's id", async () => {
  const { client } = traced;
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const trace = `1${TRACE.slice(1)}`;
  const told: unknown[] = [];
  model.script(
    (exchange) => {
      told.push(exchange.headers.traceparent);
      exchange.calls(['list_datasources', {}]).end();
    },
    (exchange) => {
      told.push(exchange.headers.traceparent);
      exchange.text('Done.').end();
    },
  );
  const answer = await traced.request('POST', `/api/v3/agent-sessions/${sessionId}/runs`, {
    headers: { traceparent: `00-${trace}-${SPAN}-01`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'What is there?' }),
  });
  await client.waitForRun(Object(answer.body).runId);
  const ran = await receiver.spanNamed(trace, 'run agent');
  const spans = receiver.spans.filter(
    ({ traceId, parentSpanId }) => traceId === trace && parentSpanId === ran.spanId,
  );
  const asked = spans.filter(({ name }) => name === 'chat openai-compatible/scripted');
  assert.deepEqual(
    asked.map(({ spanId }) => `00-${trace}-${spanId}-01`),
    told,
  );
  assert.ok(spans.some(({ name }) => name.startsWith('execute_tool ')));
});

test('runs and queries of an agent belong to the trace of their tool call', async () => {
  const { client } = traced;
  const notebook = await openNotebook(traced, CELLS, { datasourceSlugs: ['traced'] });
  const { sessionId } = await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  const trace = `2${TRACE.slice(1)}`;
  model.script(
    (exchange) => exchange.calls(['run_cells', { cellIds: ['environment', 'query'] }]).end('tool_calls'),
    (exchange) => exchange.calls(['run_python', { code: CODE }]).end('tool_calls'),
    (exchange) => exchange.calls(['query_datasource', { slug: 'traced', sql: 'SELECT 2' }]).end('tool_calls'),
    (exchange) => exchange.text('Done.').end(),
  );
  const answer = await traced.request('POST', `/api/v3/agent-sessions/${sessionId}/runs`, {
    headers: { traceparent: `00-${trace}-${SPAN}-01`, 'content-type': 'application/json' },
    body: JSON.stringify({ prompt: 'Look.' }),
  });
  const run = await client.waitForRun(Object(answer.body).runId);
  await receiver.spanNamed(trace, 'run agent');
  const spans = receiver.spans.filter(({ traceId }) => traceId === trace);
  const toolSpan = (tool: string) => spans.find(({ name }) => name === `execute_tool ${tool}`)?.spanId;
  assert.deepEqual(
    spans.filter(({ name }) => name === 'query sqlite').map(({ parentSpanId }) => parentSpanId),
    ['run_cells', 'run_python', 'query_datasource'].map(toolSpan),
  );
  const told = JSON.stringify(run.output);
  for (const tool of ['run_cells', 'run_python'])
    assert.ok(
      told.includes(`00-${trace}-${toolSpan(tool)}-01`),
      `${tool} finds its trace in the environment`,
    );
  await notebook.close();
});

test('code that a request runs belongs to the trace of the request, and later code belongs to no trace', async () => {
  const notebook = await openNotebook(traced, {}, { datasourceSlugs: ['traced'] });
  const trace = `3${TRACE.slice(1)}`;
  const execute = async (headers: Readonly<Record<string, string>>) => {
    const { body } = await traced.request('POST', '/api/cee/kernel/execute', {
      headers: { 'service-session-id': notebook.id, 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ code: CODE }),
    });
    return String(Object(body).stdout);
  };
  const printed = await execute({ traceparent: `00-${trace}-${SPAN}-01` });
  const request = await receiver.spanNamed(trace, 'POST /api/cee/kernel/execute');
  const query = await receiver.spanNamed(trace, 'query sqlite');
  assert.equal(query.parentSpanId, request.spanId);
  assert.match(printed, new RegExp(`^00-${trace}-${request.spanId}-01`));
  assert.match(await execute({}), /^none/);
  await notebook.close();
});

test('a run that outlives a killed server ends with the span id that its code got', async (t) => {
  const before = await startChildServer(t, {
    TROUPE_OTLP_URL: receiver.url,
    TROUPE_TRACE_SAMPLE_PERCENT: '0',
  });
  const notebook = await openNotebook(before, {
    wait: 'import os, time\nopen("told.txt", "w").write(os.environ["TRACEPARENT"] + "\\n")\ntime.sleep(600)',
  });
  const trace = `4${TRACE.slice(1)}`;
  const answer = await fetch(`${before.baseUrl}/api/v3/notebook-sessions/${notebook.id}/executions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
      'content-type': 'application/json',
      traceparent: `00-${trace}-${SPAN}-01`,
    },
    body: JSON.stringify({ type: 'all' }),
  });
  const { runId } = Object(await answer.json());
  const file = join(before.dataDir, 'workspaces', OWNER.workspaceId, 'files', 'told.txt');
  await eventually('the code has written down its trace', () => textOf(file).endsWith('\n'));
  const request = await receiver.spanNamed(trace, EXECUTIONS);
  await before.end('SIGKILL');

  const { client } = await before.again();
  await client.runs.cancel(runId);
  const ran = await receiver.spanNamed(trace, 'run notebook');
  assert.equal(textOf(file), `00-${trace}-${ran.spanId}-01\n`);
  assert.equal(ran.parentSpanId, request.spanId);
  const { createdAt } = await client.runs.get(runId);
  assert.equal(Number(BigInt(ran.startTimeUnixNano) / 1_000_000n), Date.parse(createdAt));
  assert.deepEqual(receiver.complaints, []);
});

/** Returns the text of a file; the empty string while there is no file. */
function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

test('without a receiver the trace context is still passed on, and a malformed one is ignored', async () => {
  const notebook = await openNotebook(plain, { environment: ENVIRONMENT });
  const passed = JSON.stringify((await execute(plain, notebook.id, TRACEPARENT)).output);
  assert.match(passed, new RegExp(`00-${TRACE}-(?!${SPAN})[0-9a-f]{16}-01`));
  for (const malformed of [`ff-${TRACE}-${SPAN}-01`, 'nonsense', `00-${TRACE}-${SPAN}-01-x`]) {
    assert.match(JSON.stringify((await execute(plain, notebook.id, malformed)).output), /none/);
  }
  await notebook.close();
});
