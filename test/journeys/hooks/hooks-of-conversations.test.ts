/** Hooks and conversations: whom the log of a hook shows the ends of prompts. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { addMember } from '#test/support/members.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});

test('the log of a hook shows deliveries about a conversation to its readers alone', async () => {
  const ada = await addMember(server, 'ada', 'editor');
  const bob = await addMember(server, 'bob', 'editor');
  // Nothing listens there, so the deliveries wait.
  const url = 'http://127.0.0.1:9/hook';
  const { id } = await ada.client.hooks.create({ url, events: ['run.completed'] });
  await ada.client.hooks.test(id);
  model.script((exchange) => exchange.text('Nothing.').end());
  const { environmentId } = await ada.client.executionEnvironments.create();
  const { sessionId } = await ada.client.agentSessions.open({ environmentId });
  await ada.client.agentSessions.prompt(sessionId, 'Hello');
  const events = async ({ hooks }: Client) => (await hooks.deliveries(id)).items.map(({ event }) => event);
  const all = ['hook.test', 'run.completed'];
  await eventually('the hook has heard of the prompt', async () => (await events(ada.client)).length === 2);
  assert.deepEqual(await events(ada.client), all);
  assert.deepEqual(await events(server.client), all);
  assert.deepEqual(await events(bob.client), ['hook.test']);
  await ada.client.agentSessions.grant(sessionId, 'bob');
  assert.deepEqual(await events(bob.client), all);
  const [shown] = (await ada.client.hooks.deliveries(id, { order: 'desc', limit: 1 })).items;
  assert(!Object.keys(shown ?? {}).includes('agentSessionId'));
});
