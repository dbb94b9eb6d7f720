import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startOtlpReceiver } from '#test/support/otlp-receiver.ts';
import { startScriptedModel } from '#test/support/scripted-model.ts';
import { startServer } from '#test/support/server-fixture.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`;

const receiver = await startOtlpReceiver(test);
const model = await startScriptedModel(test);
const settings = {
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

const CODE = {
  environment: 'import os\nprint(os.environ.get("TRACEPARENT", "none"))',
  query:
    'import sqlite3\nsqlite3.connect("traced.db").execute("CREATE TABLE t (n)")\nfrom troupe import datasource\ncursor = datasource("traced").cursor()\ncursor.execute("SELECT 1")\nprint(cursor.fetchall())',
};

test('a trace goes from the request through the run to the kernel and its statements', async () => {
  const { client } = traced;
  await client.datasources.create({ slug: 'traced', connection: { kind: 'sqlite', path: 'traced.db' } });
  const notebook = await openNotebook(traced, CODE, { datasourceSlugs: ['traced'] });
  const run = await execute(traced, notebook.id, TRACEPARENT);
  const request = await receiver.spanNamed(TRACE, 'POST /api/v3/notebook-sessions/:sessionId/executions');
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

test('a prompt, its tools and its questions to the model belong to the trace, and the provider is told', async () => {
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

test('without a receiver the trace is passed on all the same, and a malformed one is ignored', async () => {
  const notebook = await openNotebook(plain, { environment: CODE.environment });
  const passed = JSON.stringify((await execute(plain, notebook.id, TRACEPARENT)).output);
  assert.match(passed, new RegExp(`00-${TRACE}-(?!${SPAN})[0-9a-f]{16}-01`));
  for (const malformed of [`ff-${TRACE}-${SPAN}-01`, 'nonsense', `00-${TRACE}-${SPAN}-01-x`]) {
    assert.match(JSON.stringify((await execute(plain, notebook.id, malformed)).output), /none/);
  }
  await notebook.close();
});
