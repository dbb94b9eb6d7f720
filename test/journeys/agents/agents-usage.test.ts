/** The tokens that members spend with models, as they are billed: by run, and by day, member and model. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import type { ModelUsage } from '#src/contract/wire/usage.ts';
import { AgentLog } from '#test/support/agent-log.ts';
import { startChildServer } from '#test/support/child-server.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { type Behaviour, startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const MODEL = 'openai-compatible/scripted';
const settings = { TROUPE_OPENAI_COMPATIBLE_URL: model.url, TROUPE_DEFAULT_MODEL: MODEL };
const server = await startServer(test, settings);
const fine: Behaviour = (exchange) => exchange.text('Fine.').end();
const call: Behaviour = (exchange) => exchange.calls(['list_datasources', {}]).end('tool_calls');

async function newConversation(client: Client): Promise<string> {
  const { environmentId } = await client.executionEnvironments.create();
  return (await client.agentSessions.open({ environmentId })).sessionId;
}

/** Sends a prompt in a conversation of its own. Resolves with its run. */
async function prompted(client: Client, ...script: Behaviour[]) {
  const sessionId = await newConversation(client);
  model.script(...script);
  const { runId } = await client.agentSessions.prompt(sessionId, 'Speak.');
  return client.waitForRun(runId);
}

/** Returns an owner in a workspace of its own. */
async function newWorkspace() {
  const { id: workspaceId } = await server.client.workspaces.create({ name: 'Billed' });
  return { workspaceId, client: server.clientOf({ token: server.owner.token, workspaceId }) };
}

const sumsOf = async (client: Client) => (await client.usage()).models.items;
const counts = ({ inputTokens, outputTokens, calls, estimatedCalls }: ModelUsage) => [
  inputTokens,
  outputTokens,
  calls,
  estimatedCalls,
];

test('the tokens of a day, including those of the cache, are summed by member and model, and owners see all sums', async () => {
  const { workspaceId, client } = await newWorkspace();
  const usage = { prompt_tokens: 100, completion_tokens: 10, prompt_tokens_details: { cached_tokens: 60 } };
  const run = await prompted(client, call, (exchange) => exchange.text('Fine.').end('stop', usage));
  assert.deepEqual(run.output?.usage, {
    ...{ inputTokens: 200, cachedInputTokens: 60, cacheWriteInputTokens: 0 },
    ...{ outputTokens: 20, reasoningTokens: 0, estimatedCalls: 0 },
  });
  await client.members.create({ userId: 'ada-who-asks', role: 'editor' });
  const scopes = ['workspaceRuntime:connect'] as const;
  const { token } = await client.accessTokens.create({ name: 'ada', userId: 'ada-who-asks', scopes });
  const ada = server.clientOf({ token, workspaceId });
  await prompted(ada, fine);
  const { user } = await client.me();

  const { models } = await client.usage();
  const today = models.to;
  assert.deepEqual(
    models.items.toSorted((a, b) => a.calls - b.calls),
    [
      { userId: 'ada-who-asks', inputTokens: 100, outputTokens: 10, cacheReadTokens: 0, calls: 1 },
      { userId: user.id, inputTokens: 200, outputTokens: 20, cacheReadTokens: 60, calls: 2 },
    ].map((sum) => ({ day: today, model: MODEL, cacheWriteTokens: 0, estimatedCalls: 0, ...sum })),
  );
  assert.deepEqual(
    (await sumsOf(ada)).map(({ userId }) => userId),
    ['ada-who-asks'],
  );
  const first = (await client.usage({ limit: 1 })).models;
  assert.equal(first.items.length, 1);
  const second = (await client.usage({ limit: 1, after: first.nextCursor ?? '' })).models;
  assert.deepEqual([...first.items, ...second.items], models.items);
  assert.equal(second.nextCursor, null);
  const mine = (await ada.usage({ after: first.nextCursor ?? '' })).models.items;
  assert.ok(mine.every(({ userId }) => userId === 'ada-who-asks'));

  await client.runs.delete(run.id);
  await client.members.delete('ada-who-asks');
  assert.deepEqual(await sumsOf(client), models.items, 'sums outlive runs and members');
});

test('pages continue after the longest names of a model and of a user', async () => {
  const { workspaceId, client } = await newWorkspace();
  const userId = 'u'.repeat(128);
  await client.members.create({ userId, role: 'editor' });
  const scopes = ['workspaceRuntime:connect'] as const;
  const { token } = await client.accessTokens.create({ name: 'long', userId, scopes });
  const member = server.clientOf({ token, workspaceId });
  const names = ['a', 'b'].map((end) => `openai-compatible/${'m'.repeat(255)}${end}`);
  for (const name of names) {
    model.script(fine);
    assert.equal((await member.models.test(name)).ok, true);
  }
  const first = (await client.usage({ limit: 1 })).models;
  const second = (await client.usage({ limit: 1, after: first.nextCursor ?? '' })).models;
  assert.deepEqual(
    [...first.items, ...second.items].map(({ model: name }) => name),
    names,
  );
});

test('sums are selected by days, and invalid days and cursors are refused', async () => {
  const { client } = await newWorkspace();
  await prompted(client, fine);
  const [{ day }] = (await sumsOf(client)) as [ModelUsage];
  const count = async (from: string, to: string) => (await client.usage({ from, to })).models.items.length;
  assert.equal(await count(day, day), 1);
  assert.equal(await count('2020-01-01', '2020-12-31'), 0);
  assert.equal(await count(day, '2020-12-31'), 0);
  for (const days of [{ from: '2020-01-01', to: '2021-01-02' }, { to: '2021-02-30' }, { from: 'yesterday' }])
    assert.equal(await refusalOf(client.usage(days)), '400 invalid_request', JSON.stringify(days));
  assert.equal(await refusalOf(client.usage({ after: 'run_1' })), '400 invalid_cursor');
});

test('an answer that breaks off after its figures is counted, and a cancelled answer is counted as well', async () => {
  const { client } = await newWorkspace();
  const breaks: Behaviour = (exchange) => {
    exchange.text('The first half').usage({ prompt_tokens: 300, completion_tokens: 4 });
    setImmediate(() => exchange.cut());
  };
  const run = await prompted(client, breaks, fine);
  assert.deepEqual(
    [run.output?.usage?.inputTokens, run.output?.usage?.outputTokens, run.output?.usage?.estimatedCalls],
    [400, 14, 0],
  );
  assert.deepEqual((await sumsOf(client)).map(counts), [[400, 14, 2, 0]]);

  const sessionId = await newConversation(client);
  await using log = await AgentLog.open(client, sessionId);
  model.script((exchange) => void exchange.usage({ prompt_tokens: 500, completion_tokens: 1 }).text('Half'));
  const { runId } = await client.agentSessions.prompt(sessionId, 'Speak.');
  await log.heard('Half');
  await client.runs.cancel(runId);
  await client.waitForRun(runId);
  assert.deepEqual((await sumsOf(client)).map(counts), [[900, 15, 3, 0]]);
});

test('the limit of tokens also applies to a provider that reports no tokens, and calls of such a provider are marked as estimated', async () => {
  const limited = await startServer(test, { ...settings, TROUPE_AGENT_MAX_TOKENS: '20000' });
  const { client } = limited;
  const long: Behaviour = (exchange) =>
    exchange.text('word '.repeat(10_000)).calls(['list_datasources', {}]).end('tool_calls', null);
  const run = await prompted(client, long, long);
  assert.deepEqual([run.status, run.error?.code], ['failed', 'agent_token_limit']);
  const { outputTokens = 0, estimatedCalls } = run.output?.usage ?? {};
  assert.deepEqual([outputTokens, estimatedCalls], [25_002, 2]);
  const broken: Behaviour = (exchange) => {
    exchange.text('word '.repeat(20_000));
    setImmediate(() => exchange.cut());
  };
  const again = await prompted(client, broken);
  assert.deepEqual([again.status, again.error?.code], ['failed', 'agent_token_limit']);
  const [sum] = await sumsOf(client);
  assert.deepEqual([sum?.calls, sum?.estimatedCalls], [3, 3]);
});

test('each step before a kill -9 is counted once', async () => {
  const killed = await startChildServer(test, settings);
  const sessionId = await newConversation(killed.client);
  const number = model.exchanges.length;
  model.script(call, () => {});
  await killed.client.agentSessions.prompt(sessionId, 'Speak.');
  await model.asked(number + 1);
  await killed.end('SIGKILL');
  const { client } = await killed.again();
  assert.deepEqual((await sumsOf(client)).map(counts), [[100, 10, 1, 0]]);
  model.script(fine);
  await client.waitForRun((await client.agentSessions.prompt(sessionId, 'Again.')).runId);
  assert.deepEqual((await sumsOf(client)).map(counts), [[200, 20, 2, 0]]);
});

test('conversations in several workers, and tests of a model, add to one sum', async () => {
  const { client } = await newWorkspace();
  for (let n = 0; n < 8; n++) await prompted(client, fine);
  model.script(fine);
  assert.equal((await client.models.test(MODEL)).ok, true);
  assert.deepEqual((await sumsOf(client)).map(counts), [[900, 90, 9, 0]]);
});
