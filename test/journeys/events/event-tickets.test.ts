import assert from 'node:assert/strict';
import test from 'node:test';
import { createClient } from '#src/contract/client/client.ts';
import { openNotebook, writing } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test, { TROUPE_LOG_LEVEL: 'debug' });
const { client, baseUrl } = server;

/** Opens a stream as a browser's `EventSource` does: without additional headers. */
const open = (url: string) => fetch(baseUrl + url);
const statusOf = async (url: string) => {
  const response = await open(url);
  await response.body?.cancel();
  return response.status;
};

test('a ticket opens one stream once, without any header, and is in no log', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { ticket, url, expiresAt } = await client.notebookSessions.eventTicket(notebook.id);
  const lifeMs = Date.parse(expiresAt) - Date.now();
  assert.ok(lifeMs > 50_000 && lifeMs <= 60_000, `${lifeMs}`);
  const stream = await open(url);
  assert.deepEqual([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream']);
  assert.equal(await statusOf(url), 401);
  const other = await openNotebook(server, { a: '1' });
  const foreign = await client.notebookSessions.eventTicket(notebook.id);
  assert.equal(await statusOf(foreign.url.replace(notebook.id, other.id)), 401);
  assert.equal(await statusOf(foreign.url), 401);
  const elsewhere = await client.notebookSessions.eventTicket(notebook.id);
  assert.equal(await statusOf(`/api/v3/notebook-sessions/${notebook.id}?ticket=${elsewhere.ticket}`), 401);
  await notebook.run(['a']);
  await notebook.close();
  assert.match(await stream.text(), /"type":"session\.closed"/);
  await other.close();
  const log = JSON.stringify(server.log);
  for (const secret of [ticket, foreign.ticket, elsewhere.ticket]) assert.ok(!log.includes(secret));
});

test('a ticket has the rights of its caller, and becomes invalid with the token of the caller, even while its stream is open', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await client.members.create({ userId: 'guest', role: 'viewer' });
  const token = await client.accessTokens.create({
    name: 'of a browser',
    userId: 'guest',
    scopes: ['workspaceRuntime:connect'],
  });
  const { workspaceId } = server.owner;
  const guest = createClient({ baseUrl, accessToken: token.token, workspaceId });
  const [used, unused] = [
    await guest.notebookSessions.eventTicket(notebook.id),
    await guest.notebookSessions.eventTicket(notebook.id),
  ];
  const stream = await open(used.url);
  assert.equal(stream.status, 200);
  await client.accessTokens.delete(token.id);
  assert.ok(!(await stream.text()).includes('session.closed'));
  assert.equal(await statusOf(unused.url), 401);
  await notebook.close();
});

test('a ticket of a conversation needs the right to read the conversation', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const { url } = await client.agentSessions.eventTicket(sessionId);
  const stream = await open(url);
  assert.equal(stream.status, 200);
  await client.members.create({ userId: 'stranger', role: 'editor' });
  const { token } = await client.accessTokens.create({
    name: 'of a stranger',
    userId: 'stranger',
    scopes: ['workspaceRuntime:connect'],
  });
  const stranger = createClient({ baseUrl, accessToken: token, workspaceId: server.owner.workspaceId });
  await assert.rejects(stranger.agentSessions.eventTicket(sessionId), { status: 404 });
  await assert.rejects(client.notebookSessions.eventTicket('nb_none'), { status: 404 });
  await client.agentSessions.close(sessionId);
  assert.match(await stream.text(), /"type":"session\.closed"/);
});

test('no ticket is issued for a closed session, and earlier tickets no longer work', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { environmentId } = notebook;
  const { sessionId } = await client.agentSessions.open({ environmentId, notebookSessionId: notebook.id });
  const early = [
    await client.notebookSessions.eventTicket(notebook.id),
    await client.agentSessions.eventTicket(sessionId),
  ];
  await notebook.close();
  for (const { url } of early) assert.equal(await statusOf(url), 204);
  for (const kind of ['notebook-sessions', 'agent-sessions']) {
    const path = `/api/v3/${kind}/${notebook.id}/event-tickets`;
    const { status, body } = await server.request('POST', path);
    assert.deepEqual([status, Object(body).code], [409, 'session_closed']);
  }
  await client.notebookSessions.open({ notebookId: notebook.id, environmentId });
  const { url } = await client.notebookSessions.eventTicket(notebook.id);
  assert.equal(await statusOf(url), 200);
  await notebook.close();
});

test('with a ticket, a subscriber continues after the event that the query names', async () => {
  const notebook = await openNotebook(server, { a: writing('missed') });
  const events = await notebook.events();
  const lastEventId = events.ids.at(-1)!;
  await notebook.run(['a']);
  const { url } = await client.notebookSessions.eventTicket(notebook.id);
  const stream = await open(`${url}&lastEventId=${lastEventId}`);
  await notebook.close();
  assert.match(await stream.text(), /"text":"missed\\n"\}.*"missed":true[,}]/);
});
