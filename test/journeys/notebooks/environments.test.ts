import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Environment } from '#src/contract/wire/session.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { executionEnvironments: environments, notebookSessions: sessions, notebooks } = server.client;

test('an environment is created with an empty object and is vacant', async () => {
  const { status, headers, body } = await server.request('POST', '/api/v3/execution-environments', {
    body: {},
  });
  const { environmentId, createdAt, updatedAt, ...rest } = body as Environment;
  assert.equal(status, 201);
  assert.match(environmentId, /^env_[0-9a-z]{26}$/);
  assert.equal(headers.location, `/api/v3/execution-environments/${environmentId}`);
  assert.match(createdAt, /^\d{4}-.*\.\d{3}Z$/);
  assert.equal(updatedAt, createdAt);
  assert.deepEqual(rest, { status: 'open', notebookSessionId: null, agentSessionIds: [] });
  assert.deepEqual(await environments.get(environmentId), body);
});

test('an environment is created without a body, and a body with members is refused', async () => {
  const post = (body: string | undefined) =>
    server.request('POST', '/api/v3/execution-environments', { body });
  for (const body of ['{"name":"x"}', '[]', 'null', '"{}"', '7']) {
    const answer = await post(body);
    assert.deepEqual([answer.status, (answer.body as { code: string }).code], [400, 'invalid_request'], body);
  }
  assert.deepEqual([(await post('{')).status, (await post(undefined)).status], [400, 201]);
});

test('an environment shows its session, and is vacant again when the session is closed', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const occupied = await environments.get(notebook.environmentId);
  assert.equal(occupied.notebookSessionId, notebook.id);
  await notebook.close();
  const vacant = await environments.get(notebook.environmentId);
  assert.deepEqual({ ...occupied, notebookSessionId: null, updatedAt: vacant.updatedAt }, vacant);
});

test('an environment to which a session is attached cannot be closed', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { environmentId } = notebook;
  assert.equal(await refusalOf(environments.close(environmentId)), '409 environment_in_use');
  assert.equal((await environments.get(environmentId)).status, 'open');
  await notebook.close();
  assert.equal((await environments.close(environmentId)).status, 'closed');
});

test('a closed environment can be read, stays closed and accepts no session', async () => {
  const { environmentId } = await environments.create();
  const closed = await environments.close(environmentId);
  const { updatedAt, createdAt, ...rest } = closed;
  assert.ok(updatedAt >= createdAt);
  assert.deepEqual(rest, { environmentId, status: 'closed', notebookSessionId: null, agentSessionIds: [] });
  assert.deepEqual(await environments.get(environmentId), closed);
  assert.equal(await refusalOf(environments.close(environmentId)), '409 environment_closed');
  const { id: notebookId } = await notebooks.create();
  assert.equal(await refusalOf(sessions.open({ notebookId, environmentId })), '409 environment_closed');
  assert.equal(await refusalOf(sessions.get(notebookId)), '404 not_found');
});

test('closing an environment deletes no file of the workspace', async () => {
  const notebook = await openNotebook(server, { a: "open('kept.txt', 'w').write('still here')" });
  await notebook.run(['a']);
  await notebook.close();
  await environments.close(notebook.environmentId);
  const file = join(server.filesDir, 'kept.txt');
  assert.ok(existsSync(file));
  assert.equal(readFileSync(file, 'utf8'), 'still here');
});

test('an unknown environment is not found, even if its id is malformed', async () => {
  for (const id of ['env_00000000000000000000000000', 'nb_1', 'x'.repeat(300), 'ü', '..', '%00']) {
    assert.equal(await refusalOf(environments.get(id)), '404 not_found', id);
    assert.equal(await refusalOf(environments.close(id)), '404 not_found', id);
  }
});
