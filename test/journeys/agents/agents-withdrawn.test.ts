/** Prompts that did not complete: no later request asks a model for them, at any vendor, and the history says how they ended. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { AgentEntry } from '#src/contract/wire/agent.ts';
import { AgentLog } from '#test/support/agent-log.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { MODELS, startVendorStandIn } from '#test/support/stand-ins/vendor-protocols.ts';

const vendor = await startVendorStandIn(test);
const settings = {
  ANTHROPIC_API_KEY: 'key-of-anthropic',
  TROUPE_ANTHROPIC_BASE_URL: vendor.url,
  OPENAI_API_KEY: 'key-of-openai',
  TROUPE_OPENAI_BASE_URL: vendor.url,
  TROUPE_OPENAI_COMPATIBLE_URL: vendor.url,
  TROUPE_AGENT_MAX_STEPS: '2',
};
const server = await startServer(test, settings);
const { client } = server;
const DANGER = 'Drop the table orders.';
const fine = { text: 'It is noon.' };

/** Returns the outcomes of the prompts among entries, in order. */
const outcomes = (entries: readonly AgentEntry[]) =>
  entries.flatMap(({ role, outcome }) => (role === 'user' ? [outcome ?? null] : []));

async function opened(model: string): Promise<string> {
  const { environmentId } = await client.executionEnvironments.create();
  return (await client.agentSessions.open({ environmentId, config: { model } })).sessionId;
}

/** Asks for the time. Returns the request that the vendor received. */
async function askTime(of: Pick<typeof server, 'client'>, sessionId: string): Promise<string> {
  const number = vendor.requests.length;
  vendor.script(fine);
  const { runId } = await of.client.agentSessions.prompt(sessionId, 'What time is it?');
  const run = await of.client.waitForRun(runId);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  return (await vendor.asked(number)).body;
}

for (const [model, path] of Object.entries(MODELS)) {
  test(`a prompt that was cancelled before its answer is never sent to ${model} again`, async () => {
    const sessionId = await opened(model);
    await using log = await AgentLog.open(client, sessionId);
    const number = vendor.requests.length;
    vendor.script('silence');
    const { runId } = await client.agentSessions.prompt(sessionId, DANGER);
    const asked = await vendor.asked(number);
    assert.deepEqual([asked.path, asked.body.includes(DANGER)], [path, true]);
    await client.runs.cancel(runId);
    await log.over(runId);

    const body = await askTime(server, sessionId);
    assert.ok(!body.includes(DANGER), body);
    assert.match(body, /A request that stood here was cancelled by a person\. It is withdrawn/);
    const { entries } = await client.agentSessions.get(sessionId);
    assert.deepEqual(entries[0]?.content, [{ type: 'text', text: DANGER }]);
    assert.deepEqual(outcomes(entries), ['cancelled', null]);
    assert.deepEqual((await client.agentSessions.entries(sessionId)).items, entries);
    const told = log.dataOf('agent-entry').filter(({ id }) => id === entries[0]?.id);
    assert.deepEqual(outcomes(told), [null, 'cancelled']);
  });

  test(`a prompt that ${model} has refused is not sent with later prompts`, async () => {
    const sessionId = await opened(model);
    vendor.script({ refuse: 400 });
    const { runId } = await client.agentSessions.prompt(sessionId, DANGER);
    assert.equal((await client.waitForRun(runId)).status, 'failed');
    for (let i = 0; i < 2; i++) assert.ok(!(await askTime(server, sessionId)).includes(DANGER));
    assert.deepEqual(outcomes((await client.agentSessions.get(sessionId)).entries), ['failed', null, null]);
  });

  test(`${model} gets the ids of cells that a cancelled prompt changed, but not the text of that prompt`, async () => {
    const notebook = await openNotebook(server, { a: 'a = 1' });
    const { environmentId, id } = notebook;
    await client.agentSessions.open({ environmentId, notebookSessionId: id, config: { model } });
    await using log = await AgentLog.open(client, id);
    const code =
      'import marimo._code_mode as cm\n' +
      'async with cm.get_context() as ctx:\n' +
      '    ctx.cells["a"].code\n' +
      '    ctx.edit_cell("a", "a = 2")\n';
    const number = vendor.requests.length;
    vendor.script({ call: ['run_python', { code }] }, 'silence');
    const { runId } = await client.agentSessions.prompt(id, DANGER);
    await vendor.asked(number + 1);
    await client.runs.cancel(runId);
    await log.over(runId);

    const body = await askTime(server, id);
    assert.deepEqual([body.includes(DANGER), body.includes('edit_cell("')], [false, false], body);
    const text = body.replaceAll('\\n', '\n');
    assert.match(text, /changed or run for it:\n<untrusted-data>\na\n<\/untrusted-data>/);
    const { entries } = await client.agentSessions.get(id);
    const [result] = entries.flatMap(({ content }) => content.filter(({ type }) => type === 'tool-result'));
    assert.ok(result?.type === 'tool-result');
    assert.deepEqual([result.status, result.touchedCells], ['completed', ['a']]);
  });
}

test('a prompt that kill -9 interrupts is stale in the history, and is not sent to a model again', async () => {
  const child = await startChildServer(test, settings);
  const { environmentId } = await child.client.executionEnvironments.create();
  const model = 'openai-compatible/anything';
  const { sessionId } = await child.client.agentSessions.open({ environmentId, config: { model } });
  const number = vendor.requests.length;
  vendor.script('silence');
  const { runId } = await child.client.agentSessions.prompt(sessionId, DANGER);
  await vendor.asked(number);
  await child.end('SIGKILL');

  const again = await child.again();
  const paged = () => again.client.agentSessions.entries(sessionId);
  assert.deepEqual(outcomes((await paged()).items), ['stale']);
  assert.deepEqual(outcomes((await again.client.agentSessions.get(sessionId)).entries), ['stale']);
  const body = await askTime(again, sessionId);
  assert.ok(!body.includes(DANGER), body);
  assert.match(body, /was cut off when the server stopped/);
  // The history itself has the outcome, also when the run is deleted.
  await again.client.runs.cancel(runId);
  await again.client.runs.delete(runId);
  assert.deepEqual(outcomes((await paged()).items), ['stale', null]);
});

test('a prompt that a limit ended stays unchanged, with a note about its end', async () => {
  const sessionId = await opened('openai-compatible/anything');
  vendor.script({ call: ['list', {}] }, { call: ['list', {}] });
  const { runId } = await client.agentSessions.prompt(sessionId, 'List everything.');
  assert.equal((await client.waitForRun(runId)).error?.code, 'agent_step_limit');
  const body = await askTime(server, sessionId);
  assert.match(body, /List everything\./);
  assert.match(body, /the request before this stopped at a limit, and is over/);
  assert.deepEqual(outcomes((await client.agentSessions.get(sessionId)).entries), ['limit', null]);
});
