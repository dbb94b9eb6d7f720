/** Agents that are bound to a notebook and use its kernel. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Run } from '#src/contract/wire/run.ts';
import { AgentLog, said } from '#test/support/agent-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const parts = (run: Run) => run.output?.parts;

test('a cell that a bound agent creates and runs appears in the notebook, on its stream, and in the run', async () => {
  const notebook = await openNotebook(server, { numbers: 'numbers = [1, 2, 3, 4]' });
  const notebookLog = await notebook.events();
  const opened = await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  assert.equal(opened.sessionId, notebook.id);
  const log = await AgentLog.open(client, notebook.id);
  const code = [
    'import marimo._code_mode as cm',
    'async with cm.get_context() as ctx:',
    '    cell = ctx.create_cell("total = sum(numbers)\\ntotal", name="total")',
    '    ctx.run_cell(cell)',
  ].join('\n');
  const before = model.exchanges.length;
  model.script(
    (exchange) => exchange.text('I will add a cell.').calls(['run_python', { code }]).end('tool_calls'),
    (exchange) => exchange.calls(['read_notebook', {}]).end('tool_calls'),
    (exchange) => exchange.text('The sum is **10**.').end(),
  );
  const { runId } = await client.agentSessions.prompt(notebook.id, 'Add up the numbers.');
  const run = await client.waitForRun(runId);
  await log.over(runId);

  const saved = await client.notebooks.get(notebook.id);
  const cell = saved.serialization.cells[1]!;
  assert.equal(cell.code, 'total = sum(numbers)\ntotal');
  // The stream of the notebook is another connection than that of the conversation.
  await notebookLog.until(({ type }) => type === 'execution-completed');
  await notebookLog.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === cell.cell_id && data.output?.data !== undefined,
  );
  assert.ok(notebookLog.types.includes('cells-registered'));
  const live = notebookLog.events.slice(notebookLog.types.indexOf('session.replayed'));
  for (const type of ['cells-registered', 'cell-op', 'execution-completed'] as const) {
    const caused = live.filter((event) => event.type === type);
    assert.ok(caused.length > 0, type);
    assert.deepEqual([...new Set(caused.map((event) => event.runId))], [runId], type);
  }
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  const summary = (parts(run) ?? []).map((part) =>
    part.type === 'tool-call' ? [part.type, part.name, part.status] : part,
  );
  assert.deepEqual(summary, [
    { type: 'assistant-message', text: 'I will add a cell.' },
    ['tool-call', 'run_python', 'completed'],
    ['tool-call', 'read_notebook', 'completed'],
    { type: 'final-answer', markdown: 'The sum is **10**.' },
  ]);
  assert.deepEqual(
    log.dataOf('tool-call').map(({ name, input }) => [name, input]),
    [
      ['run_python', { code }],
      ['read_notebook', {}],
    ],
  );
  const results = log.dataOf('tool-result');
  assert.deepEqual(
    results.map(({ status }) => status),
    ['completed', 'completed'],
  );
  assert.match(String(results[1]?.output), /total = sum\(numbers\)[\s\S]*10/);
  const told = model.exchanges[before + 2]!.asked;
  assert.match(told, /^<untrusted-data>\n[\s\S]*total = sum\(numbers\)[\s\S]*<\/untrusted-data>$/);
  assert.deepEqual(
    model.exchanges[before]!.body.tools?.map((tool) => tool.function.name),
    [
      'run_python',
      'read_notebook',
      'read_cells',
      'read_output',
      'run_cells',
      'list_datasources',
      'describe_datasource',
      'query_datasource',
    ],
  );
  assert.deepEqual((await client.executions.list(notebook.id)).items, []);
});

test('events of cells that a bound agent runs name the run of its prompt', async () => {
  const notebook = await openNotebook(server, { hello: 'print("hello")' });
  await using notebookLog = await notebook.events();
  const { environmentId, id } = notebook;
  await client.agentSessions.open({ environmentId, notebookSessionId: id });
  model.script(
    (exchange) => exchange.calls(['run_cells', { cellIds: ['hello'] }]).end('tool_calls'),
    (exchange) => exchange.text('It says hello.').end(),
  );
  const { runId } = await client.agentSessions.prompt(id, 'Run it.');
  await client.waitForRun(runId);
  const printed = await notebookLog.until(({ type }) => type === 'console-output');
  assert.equal(printed.runId, runId);
});

test('closing the notebook session closes its agent and cancels its prompt', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { environmentId } = notebook;
  await client.agentSessions.open({ environmentId, notebookSessionId: notebook.id });
  const log = await AgentLog.open(client, notebook.id);
  const number = model.exchanges.length;
  model.script((exchange) => void exchange.text('I am '));
  const { runId } = await client.agentSessions.prompt(notebook.id, 'Talk.');
  const exchange = await model.asked(number);
  await log.heard('I am ');
  await notebook.close();
  await log.ended;
  assert.equal(await exchange.over, 'cut');
  const run = await client.runs.get(runId);
  assert.deepEqual([run.status, run.error?.code], ['cancelled', 'session_closed']);
  const session = await client.agentSessions.get(notebook.id);
  assert.equal(session.status, 'closed');
  assert.deepEqual(said(session).at(-1), ['assistant', [{ type: 'text', text: 'I am ' }]]);
  assert.deepEqual(log.dataOf('session.closed'), [{ reason: 'closed', closedBy: 'owner' }]);
  assert.equal(await refusalOf(client.agentSessions.prompt(notebook.id, 'Hello?')), '409 session_closed');
  await client.executionEnvironments.close(environmentId);
});

test('a cancel interrupts the kernel, and the open tool call gets a result', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await client.agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  const log = await AgentLog.open(client, notebook.id);
  const number = model.exchanges.length;
  const code = 'import time\nprint("at work", flush=True)\nwhile True: time.sleep(0.01)';
  model.script(
    (exchange) => exchange.calls(['run_python', { code }], ['read_notebook', {}]).end('tool_calls'),
    (exchange) => exchange.text('Fine.').end(),
  );
  const notebookLog = await notebook.events();
  const { runId } = await client.agentSessions.prompt(notebook.id, 'Wait for it.');
  await log.until(({ type }) => type === 'tool-result'); // the cell of the other call
  await notebookLog.until(({ type, data }) => type === 'console-output' && data.text.includes('at work'));
  await client.runs.cancel(runId);
  const run = await client.waitForRun(runId);
  assert.equal(run.status, 'cancelled');
  assert.deepEqual(
    (parts(run) ?? []).map((part) => part.type === 'tool-call' && [part.name, part.status]),
    [
      ['run_python', 'cancelled'],
      ['read_notebook', 'completed'],
    ],
  );
  assert.equal((await notebook.record()).status, 'ready');
  const next = await client.agentSessions.prompt(notebook.id, 'Go on.');
  assert.equal((await client.waitForRun(next.runId)).status, 'completed');
  const { messages } = (await model.asked(number + 1)).body;
  const calls = messages.flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id));
  assert.deepEqual(messages.flatMap(({ tool_call_id }) => tool_call_id ?? []).sort(), calls.sort());
});
