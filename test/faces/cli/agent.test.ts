import assert from 'node:assert/strict';
import test from 'node:test';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { troupe } from './captured-terminal.ts';
import { Shell } from './troupe-process.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const env = {
  SERVICE_BASE_URL: server.baseUrl,
  SERVICE_ACCESS_TOKEN: OWNER.token,
  SERVICE_WORKSPACE_ID: OWNER.workspaceId,
};
const cli = (args: readonly string[], stdin = '') => troupe(args, { env, stdin });

async function newConversation(): Promise<string> {
  return (await cli(['agent', 'new'])).out.trim();
}

test("a prompt prints the agent's text to one stream and its actions to the other", async () => {
  const id = await newConversation();
  model.script(
    (exchange) =>
      exchange.text('Let me see.').calls(['list_datasources', {}], ['brew', {}]).end('tool_calls'),
    (exchange) => exchange.text('There ', 'are \u001b[2Jnone.').end(),
  );
  assert.deepEqual(await cli(['agent', 'prompt', id, 'What is there?']), {
    exitCode: 0,
    out: 'Let me see.\nThere are none.\n',
    err: [
      '▸ list_datasources {}',
      '▸ brew {}',
      '  brew failed: There is no tool brew. There are: list_datasources, describe_datasource, query_datasource.',
      '',
    ].join('\n'),
  });
  const shown = await cli(['agent', 'show', id]);
  assert.match(shown.out, /> What is there\?\n\nLet me see\.\n▸ list_datasources \{\}/);
  assert.match((await cli(['agent', 'list'])).out, new RegExp(`${id} +ready +openai-compatible/scripted`));
});

test('the usage of the workspace shows the tokens of models by day, member and model', async () => {
  const id = await newConversation();
  model.script((exchange) => exchange.text('Hello.').end());
  await cli(['agent', 'prompt', id, 'Hi.']);
  const { out } = await cli(['workspace', 'usage']);
  assert.match(
    out,
    /^DAY +BY +MODEL +CALLS +INPUT .*\n\d{4}-\d\d-\d\d +\S+ +openai-compatible\/scripted +\d+ +\d+00 /m,
  );
  const { models } = JSON.parse((await cli(['workspace', 'usage', '--json'])).out);
  assert.deepEqual([models.items.length, models.nextCursor], [1, null]);
  const early = await cli(['workspace', 'usage', '--from', '2020-01-01', '--to', '2020-01-31']);
  assert.ok(!early.out.includes('MODEL'));
});

test('with --json each event is printed as a line, and the run as the last line', async () => {
  const id = await newConversation();
  model.script((exchange) => exchange.text('Hello.').end());
  const { exitCode, out } = await cli(['agent', 'prompt', id, '--json'], 'Hi.\n');
  const lines = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; data: { status?: string } });
  assert.equal(exitCode, 0);
  assert.deepEqual([...new Set(lines.map(({ type }) => type))].sort(), [
    'agent-entry',
    'run',
    'run-status',
    'session.status',
    'text-delta',
  ]);
  assert.deepEqual([lines.at(-1)?.type, lines.at(-1)?.data.status], ['run', 'completed']);
});

test('a prompt that fails prints the reason and exits with 1', async () => {
  const id = await newConversation();
  model.script((exchange) => exchange.refuse(401));
  assert.deepEqual(await cli(['agent', 'prompt', id, 'Hi.']), {
    exitCode: 1,
    out: '',
    err: 'failed model_auth: The provider of openai-compatible/scripted does not accept the key.\n',
  });
});

test('a chat answers each line', async () => {
  model.script(
    (exchange) => exchange.text('One.').end(),
    (exchange) => exchange.text('Two.').end(),
  );
  const { exitCode, out } = await cli(['agent', 'chat'], 'first\n\nsecond\n');
  assert.deepEqual([exitCode, out], [0, 'One.\nTwo.\n']);
});

test('when opening a conversation fails, the environment that was created for it is closed', async () => {
  const openOnes = async () =>
    (await server.client.executionEnvironments.list({ status: 'open' })).items.length;
  const before = await openOnes();
  for (const wrong of [
    ['--model', 'unknown'],
    ['--datasource', 'Not a slug'],
  ])
    assert.equal((await cli(['agent', 'new', ...wrong])).exitCode, 1);
  assert.equal(await openOnes(), before);
});

test('providers of models can be listed and tested, and their keys are read from standard input', async () => {
  assert.match((await cli(['models', 'list'])).out, /anthropic +no +- +anthropic\/…/);
  assert.equal(
    (await cli(['models', 'set-key', 'anthropic'], 'sk-1\n')).out,
    'The key for anthropic is stored.\n',
  );
  assert.match((await cli(['models', 'list'])).out, /anthropic +yes +workspace/);
  assert.equal((await cli(['models', 'delete-key', 'anthropic'])).exitCode, 0);
  model.script((exchange) => exchange.refuse(404, { error: { message: 'no such model' } }));
  const { exitCode, out } = await cli(['models', 'test']);
  assert.equal(exitCode, 1);
  assert.match(out, /knows no model openai-compatible\/scripted: no such model/);
});

test('Ctrl-C cancels the prompt: the connection to the model closes, the run is cancelled, and the command reports the cancellation', async (t) => {
  const id = await newConversation();
  const number = model.exchanges.length;
  model.script((exchange) => void exchange.text('Half an ans'));
  const program = new Shell(t, server).start(['agent', 'prompt', id, 'Speak.']);
  await program.until('Half an ans');
  program.interrupt();
  assert.deepEqual(await program.ended, {
    exitCode: 130,
    out: 'Half an ans\n',
    err: '\ncancelling; press Ctrl-C again to leave at once\ncancelled\n',
  });
  assert.equal(await (await model.asked(number)).over, 'cut');
  const { items } = await server.client.agentSessions.listRuns(id);
  assert.deepEqual(
    items.map(({ status }) => status),
    ['cancelled'],
  );
});

test('Ctrl-C during an answer in a chat cancels only that answer', async (t) => {
  const id = await newConversation();
  model.script(
    (exchange) => void exchange.text('One'),
    (exchange) => exchange.text('Two.').end(),
  );
  const program = new Shell(t, server).start(['agent', 'chat', id], { input: 'first\nsecond\n' });
  await program.until('One');
  program.interrupt();
  const { exitCode, out } = await program.ended;
  assert.deepEqual([exitCode, out], [0, 'One\nTwo.\n']);
});

test('a conversation is shared and handed over, and the list shows its owner', async () => {
  const id = await newConversation();
  await server.client.members.create({ userId: 'ada', role: 'editor' });
  assert.equal((await cli(['agent', 'share', id, 'ada'])).out, `${id} is shared with ada.\n`);
  const revoked = await cli(['agent', 'share', id, 'ada', '--revoke', '--json']);
  assert.deepEqual(JSON.parse(revoked.out), { sessionId: id, userId: 'ada', shared: false });
  assert.equal((await cli(['agent', 'hand-over', id, 'ada'])).out, `${id} belongs to ada.\n`);
  assert.match((await cli(['agent', 'list'])).out, new RegExp(`${id} .* ada +\\d{4}-`));
});
