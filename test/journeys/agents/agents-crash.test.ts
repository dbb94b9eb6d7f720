// tier: whole, because it kills, fills and restarts servers of several processes
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { AgentLog } from '#test/support/agent-log.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { type Behaviour, startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const settings = {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
};
const fine: Behaviour = (exchange) => exchange.text('Fine.').end();

test('after kill -9 during a tool call the next prompt is answered, no code runs twice, and the old run is stale', async () => {
  const server = await startChildServer(test, settings);
  const { client } = server;
  const notebook = await openNotebook(server, { a: 'a = 41' });
  const { environmentId, id } = notebook;
  await client.agentSessions.open({ environmentId, notebookSessionId: id });
  await using log = await AgentLog.open(client, id);
  const code = 'open("ran", "a").write("x")\nprint("at work", flush=True)\nimport time\ntime.sleep(60)';
  const marker = join(server.dataDir, 'workspaces', OWNER.workspaceId, 'files', 'ran');
  await using notebookLog = await notebook.events();
  model.script((exchange) => exchange.calls(['run_python', { code }]).end('tool_calls'));
  const { runId } = await client.agentSessions.prompt(id, 'Run it.');
  await log.until(({ type }) => type === 'tool-call');
  await notebookLog.until(({ type, data }) => type === 'console-output' && data.text.includes('at work'));
  await server.end('SIGKILL');

  const { client: again } = await server.again();
  const before = await again.agentSessions.get(id);
  assert.deepEqual(
    [before.status, before.currentRunId, before.environmentId, before.notebookSessionId],
    ['ready', null, environmentId, id],
  );
  assert.deepEqual(
    before.entries.map(({ role }) => role),
    ['user', 'assistant'],
  );
  const lost = await again.runs.get(runId);
  assert.deepEqual([lost.status, lost.stale], ['running', true]);

  const number = model.exchanges.length;
  model.script(
    (exchange) => exchange.calls(['run_python', { code: 'print("back")' }]).end('tool_calls'),
    fine,
  );
  const next = await again.waitForRun((await again.agentSessions.prompt(id, 'Are you there?')).runId);
  assert.equal(next.status, 'completed', JSON.stringify(next.error));
  const { messages } = (await model.asked(number)).body;
  assert.deepEqual(
    messages.slice(1).map(({ role }) => role),
    ['user'],
  );
  assert.match(String(messages[1]?.content), /Not all of them ended in order: their effects are not known\./);
  const [tool] = (next.output?.parts ?? []).filter((part) => part.type === 'tool-call');
  assert.deepEqual([tool?.status, tool?.output], ['completed', 'stdout:\nback']);
  assert.equal(readFileSync(marker, 'utf8'), 'x');
  await again.runs.cancel(runId);
  assert.equal((await again.runs.get(runId)).status, 'cancelled');
});

test('a drain ends the running prompt as failed and closes the connection to the model, and the session continues after the restart', async () => {
  const server = await startServer(test, settings);
  const { environmentId } = await server.client.executionEnvironments.create();
  const { sessionId } = await server.client.agentSessions.open({ environmentId });
  await using log = await AgentLog.open(server.client, sessionId);
  const number = model.exchanges.length;
  model.script((exchange) => void exchange.text('Half'), fine);
  const { runId } = await server.client.agentSessions.prompt(sessionId, 'Speak.');
  await log.heard('Half');
  const { client } = await server.restart();
  assert.equal(await (await model.asked(number)).over, 'cut');
  const run = await client.runs.get(runId);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'server_stopped']);
  const { status, entries } = await client.agentSessions.get(sessionId);
  assert.deepEqual([status, entries.map(({ role }) => role)], ['ready', ['user', 'assistant']]);
  const next = await client.waitForRun((await client.agentSessions.prompt(sessionId, 'Go on.')).runId);
  assert.equal(next.status, 'completed');
});
