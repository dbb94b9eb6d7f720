import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import type { OpenAgentSession } from '#src/contract/wire/agent.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { withoutKernels } from '#test/support/processes.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, { TROUPE_OPENAI_COMPATIBLE_URL: model.url });
const { client } = server;
const environment = async () => (await client.executionEnvironments.create()).environmentId;
const MODEL = 'openai-compatible/scripted';

/** The status with which a session is opened. */
async function statusOf(body: OpenAgentSession): Promise<number> {
  return (await server.request('POST', '/api/v3/agent-sessions', { body })).status;
}

test('opening returns 201 for a new or reopened conversation, and 200 for a conversation that is already open in the environment', async () => {
  const environmentId = await environment();
  const { sessionId } = await client.agentSessions.open({
    environmentId,
    config: { model: MODEL, instructions: 'Be brief.' },
    context: { datasourceSlugs: ['sales'] },
  });
  assert.equal(await statusOf({ environmentId, id: sessionId }), 200);
  const elsewhere = await environment();
  assert.equal(
    await refusalOf(client.agentSessions.open({ environmentId: elsewhere, id: sessionId })),
    '409 session_exists',
  );
  const closed = await client.agentSessions.close(sessionId);
  assert.deepEqual(
    [closed.status, closed.config, closed.context],
    ['closed', { model: MODEL, instructions: 'Be brief.' }, { datasourceSlugs: ['sales'] }],
  );
  assert.equal(await refusalOf(client.agentSessions.close(sessionId)), '409 session_closed');
  assert.equal((await client.executionEnvironments.close(environmentId)).status, 'closed');
  assert.equal(await statusOf({ environmentId: elsewhere, id: sessionId }), 201);
});

test('omitted members of configuration and context keep their values; null restores the default', async () => {
  const environmentId = await environment();
  const { sessionId: id } = await client.agentSessions.open({
    environmentId,
    config: { model: MODEL, instructions: 'Be brief.' },
    context: { datasourceSlugs: ['sales'] },
  });
  const change = async (body: Partial<OpenAgentSession>) => {
    const { config, context } = await client.agentSessions.open({ environmentId, id, ...body });
    return { config, context };
  };
  assert.deepEqual(await change({ config: { instructions: 'Be kind.' } }), {
    config: { model: MODEL, instructions: 'Be kind.' },
    context: { datasourceSlugs: ['sales'] },
  });
  assert.deepEqual(await change({ config: { model: null }, context: { datasourceSlugs: [] } }), {
    config: { model: null, instructions: 'Be kind.' },
    context: { datasourceSlugs: [] },
  });
});

test('an unknown member, a wrong model id and ids that do not match are refused', async () => {
  const environmentId = await environment();
  const refused = (body: object) =>
    refusalOf(client.send({ method: 'POST', path: '/api/v3/agent-sessions', body }));
  assert.equal(await refused({}), '400 invalid_request');
  assert.equal(await refused({ environmentId, config: { maxSteps: 5 } }), '400 invalid_request');
  assert.equal(await refused({ environmentId, title: 'x' }), '400 invalid_request');
  assert.equal(
    await refused({ environmentId, id: 'conv_1', notebookSessionId: 'nb_1' }),
    '400 invalid_request',
  );
  assert.equal(await refused({ environmentId, config: { model: 'gpt' } }), '400 unknown_model');
  assert.equal(await refused({ environmentId, config: { model: 'acme/gpt' } }), '400 unknown_model');
});

test('a conversation is bound only to a ready notebook in the same environment, and the binding cannot be changed', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { environmentId, id } = notebook;
  const elsewhere = await environment();
  const open = (body: OpenAgentSession) => client.agentSessions.open(body);
  assert.equal(
    await refusalOf(open({ environmentId: elsewhere, notebookSessionId: id })),
    '409 environment_differs',
  );
  assert.equal(await statusOf({ environmentId, notebookSessionId: id }), 201);
  assert.equal(await statusOf({ environmentId, notebookSessionId: id, id }), 200);
  assert.equal(await refusalOf(open({ environmentId, id })), '409 binding_differs');
  await client.agentSessions.close(id);
  assert.equal(await refusalOf(open({ environmentId, id })), '409 binding_differs');
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
  assert.equal(await refusalOf(open({ environmentId, notebookSessionId: id })), '409 notebook_not_ready');
  await withoutKernels(server.pid, async () => {
    await client.notebookSessions.open({ notebookId: id, environmentId });
    assert.equal(await refusalOf(open({ environmentId, notebookSessionId: id })), '409 notebook_not_ready');
  });
  await client.notebookSessions.waitUntilReady(id);
  assert.equal(await statusOf({ environmentId, notebookSessionId: id }), 201);
});

test('an environment with an agent session cannot be closed, and a closed environment accepts no agent', async () => {
  const environmentId = await environment();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  assert.equal(await refusalOf(client.executionEnvironments.close(environmentId)), '409 environment_in_use');
  await client.agentSessions.close(sessionId);
  await client.executionEnvironments.close(environmentId);
  assert.equal(await refusalOf(client.agentSessions.open({ environmentId })), '409 environment_closed');
});

test('a prompt without a model is refused before a run exists, and the error explains how to choose a model', async () => {
  const environmentId = await environment();
  const { sessionId, config } = await client.agentSessions.open({ environmentId });
  assert.equal(config.model, null);
  const problem = await problemOf(client.agentSessions.prompt(sessionId, 'Hello?'));
  assert.deepEqual([problem.status, problem.code], [409, 'no_model_configured']);
  for (const way of ['ANTHROPIC_API_KEY', 'TROUPE_OPENAI_COMPATIBLE_URL', 'TROUPE_LOCAL_MODEL']) {
    assert.ok(problem.message.includes(way), way);
  }
  await client.agentSessions.open({ environmentId, id: sessionId, config: { model: 'anthropic/claude' } });
  const lacking = await problemOf(client.agentSessions.prompt(sessionId, 'Hello?'));
  assert.deepEqual([lacking.status, lacking.code], [409, 'model_not_configured']);
  assert.ok(lacking.message.includes('set-key anthropic'));
  assert.deepEqual(await client.agentSessions.listRuns(sessionId), { items: [], nextCursor: null });
  assert.deepEqual((await client.agentSessions.get(sessionId)).entries, []);
});

test('a closed conversation can be read, and has no stream', async () => {
  const environmentId = await environment();
  const { sessionId } = await client.agentSessions.open({ environmentId, config: { model: MODEL } });
  model.script((exchange) => exchange.text('Bye.').end());
  await client.waitForRun((await client.agentSessions.prompt(sessionId, 'Hi.')).runId);
  await client.agentSessions.close(sessionId);
  const types: string[] = [];
  for await (const event of client.agentSessions.follow(sessionId)) types.push(event.type);
  assert.deepEqual(types, []);
  assert.equal((await client.agentSessions.get(sessionId)).entries.length, 2);
  const reopened = await client.agentSessions.open({ environmentId, id: sessionId });
  assert.deepEqual(
    reopened.entries.map(({ role }) => role),
    ['user', 'assistant'],
  );
});

test('prompts are paged oldest first, and only cursors of the same list are accepted', async () => {
  const environmentId = await environment();
  const { sessionId } = await client.agentSessions.open({ environmentId, config: { model: MODEL } });
  const ids: string[] = [];
  for (const word of ['one', 'two', 'three']) {
    model.script((exchange) => exchange.text(word).end());
    const { runId } = await client.agentSessions.prompt(sessionId, word);
    await client.waitForRun(runId);
    ids.push(runId);
  }
  const first = await client.agentSessions.listRuns(sessionId, { limit: 2 });
  assert.deepEqual([first.items.map(({ id }) => id), first.nextCursor], [ids.slice(0, 2), ids[1]]);
  const second = await client.agentSessions.listRuns(sessionId, { limit: 2, after: ids[1] });
  assert.deepEqual([second.items.map(({ id }) => id), second.nextCursor], [ids.slice(2), null]);
  assert.equal(
    await refusalOf(client.agentSessions.listRuns(sessionId, { after: 'run_other' })),
    '400 invalid_cursor',
  );
});

test('a conversation is visible only to its creator, members with a grant and owners, and owners may read, share and stop the conversation', async () => {
  const member = async (userId: string, role: 'owner' | 'editor' | 'viewer'): Promise<Client> => {
    await client.members.create({ userId, role });
    const { token } = await client.accessTokens.create({
      name: userId,
      userId,
      scopes: ['workspaceRuntime:connect'],
    });
    return server.clientOf({ token, workspaceId: server.owner.workspaceId });
  };
  const [olga, ann, bob, eve] = await Promise.all([
    member('olga', 'owner'),
    member('ann', 'editor'),
    member('bob', 'editor'),
    member('eve', 'viewer'),
  ]);
  const environmentId = await environment();
  const { sessionId } = await ann.agentSessions.open({ environmentId, config: { model: MODEL } });
  model.script((exchange) => exchange.text('Hello, Ann.').end());
  const { runId } = await ann.agentSessions.prompt(sessionId, 'Hello');
  await ann.waitForRun(runId);

  const calls: Record<string, (by: Client) => Promise<unknown>> = {
    read: (by) => by.agentSessions.get(sessionId),
    runs: (by) => by.agentSessions.listRuns(sessionId),
    run: (by) => by.runs.get(runId),
    grants: (by) => by.agentSessions.grants(sessionId),
    open: (by) => by.agentSessions.open({ environmentId, id: sessionId }),
    prompt: (by) => by.agentSessions.prompt(sessionId, 'Hello?'),
    cancel: (by) => by.runs.cancel(runId),
    share: (by) => by.agentSessions.grant(sessionId, 'eve'),
    close: (by) => by.agentSessions.close(sessionId),
  };
  const outcomes = async (by: Client, names: readonly string[]) =>
    Object.fromEntries(
      await Promise.all(
        names.map(async (name) => [
          name,
          await calls[name]!(by).then(
            () => 'ok',
            (error: { status: number; code: string }) => `${error.status} ${error.code}`,
          ),
        ]),
      ),
    );
  const every = Object.keys(calls);
  const nothing = Object.fromEntries(every.map((name) => [name, '404 not_found']));
  assert.deepEqual(await outcomes(bob, every), nothing);
  const readOnly = '403 conversation_read_only';
  assert.deepEqual(await outcomes(olga, every), {
    ...{ read: 'ok', runs: 'ok', run: 'ok', grants: 'ok' },
    ...{ open: readOnly, prompt: readOnly, cancel: readOnly, share: 'ok', close: readOnly },
  });
  // The member's token has the scope `workspace:manage`, with which owners stop the work of others.
  assert.deepEqual(await outcomes(client, ['open', 'prompt', 'cancel']), {
    ...{ open: readOnly, prompt: readOnly, cancel: '409 run_finished' },
  });
  assert.deepEqual((await bob.agentSessions.list()).items, []);
  assert.deepEqual(
    (await ann.agentSessions.list()).items.map((item) => item.sessionId),
    [sessionId],
  );

  await ann.agentSessions.grant(sessionId, 'bob');
  await ann.agentSessions.grant(sessionId, 'eve');
  assert.deepEqual(
    (await ann.agentSessions.grants(sessionId)).items.map(({ userId, createdBy }) => [userId, createdBy]),
    [
      ['bob', 'ann'],
      ['eve', 'olga'],
    ],
  );
  model.script((exchange) => exchange.text('Hello, Bob.').end());
  assert.deepEqual(await outcomes(bob, ['read', 'run', 'open', 'prompt', 'share']), {
    ...{ read: 'ok', run: 'ok', open: 'ok', prompt: 'ok', share: readOnly },
  });
  assert.deepEqual(await outcomes(eve, ['read', 'prompt']), { read: 'ok', prompt: '403 role_too_low' });
  await ann.agentSessions.revoke(sessionId, 'bob');
  assert.deepEqual(await outcomes(bob, ['read']), { read: '404 not_found' });
  assert.equal(await refusalOf(ann.agentSessions.grant(sessionId, 'nobody')), '400 invalid_request');
  assert.deepEqual(await outcomes(client, ['close']), { close: 'ok' });
});

test('an owner can set keys of a workspace, which prompts use and no answer shows', async () => {
  const environmentId = await environment();
  const providers = async () => {
    const { items } = await client.models.list();
    return Object.fromEntries(items.map(({ provider, source }) => [provider, source]));
  };
  assert.deepEqual(await providers(), {
    anthropic: null,
    openai: null,
    'openai-compatible': 'settings',
    local: null,
  });
  await client.models.setKey('openai-compatible', 'key-of-the-workspace');
  await client.models.setKey('anthropic', 'first');
  await client.models.setKey('anthropic', 'second');
  assert.equal((await providers()).anthropic, 'workspace');
  const { sessionId } = await client.agentSessions.open({ environmentId, config: { model: MODEL } });
  const number = model.exchanges.length;
  model.script((exchange) => exchange.text('Yes.').end());
  await client.waitForRun((await client.agentSessions.prompt(sessionId, 'Key?')).runId);
  assert.equal((await model.asked(number)).headers.authorization, 'Bearer key-of-the-workspace');
  await client.keys.rotate();
  model.script((exchange) => exchange.text('ready').end());
  const tested = await client.models.test(MODEL);
  assert.deepEqual([tested.ok, tested.message], [true, 'The model answered.']);
  assert.equal((await model.asked(number + 1)).headers.authorization, 'Bearer key-of-the-workspace');
  await client.models.deleteKey('anthropic');
  assert.equal(await refusalOf(client.models.deleteKey('anthropic')), '404 not_found');
  assert.equal(await refusalOf(client.models.setKey('acme', 'x')), '404 not_found');
  assert.equal((await providers()).anthropic, null);
});
