/** The list of conversations. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { agentSessions, executionEnvironments } = server.client;
type Query = NonNullable<Parameters<typeof agentSessions.list>[0]>;
const ids = async (query: Query = {}) =>
  (await agentSessions.list(query)).items.map(({ sessionId }) => sessionId);

test('conversations are listed in the order of creation, and filtered', async () => {
  // The notebook is older than all conversations, and its conversation has its id.
  const notebook = await openNotebook(server, {});
  const { environmentId } = await executionEnvironments.create();
  const first = await agentSessions.open({ environmentId });
  const bound = await agentSessions.open({
    environmentId: notebook.environmentId,
    notebookSessionId: notebook.id,
  });
  const last = await agentSessions.open({ environmentId });
  const all = [first.sessionId, notebook.id, last.sessionId];
  assert.deepEqual(await ids(), all);
  assert.deepEqual(await ids({ order: 'desc' }), all.toReversed());

  const paged: string[] = [];
  for await (const { sessionId } of agentSessions.each({ limit: 1 })) paged.push(sessionId);
  assert.deepEqual(paged, all);

  await agentSessions.close(first.sessionId);
  assert.deepEqual(await ids({ status: 'closed' }), [first.sessionId]);
  assert.deepEqual(await ids({ status: 'open' }), all.slice(1));
  assert.deepEqual(await ids({ status: 'ready', order: 'desc' }), all.slice(1).toReversed());
  assert.deepEqual(await ids({ status: 'busy' }), []);
  const later = all.filter((_, i) => [first, bound, last][i]!.createdAt > first.createdAt);
  assert.deepEqual(await ids({ createdAfter: first.createdAt }), later);
  assert.deepEqual(await ids({ createdBefore: first.createdAt }), []);
  assert.deepEqual(await ids({ createdBefore: '2999-01-01T00:00:00Z' }), all);

  // A conversation that is opened again keeps its place; a deleted one has none.
  await agentSessions.open({ environmentId, id: first.sessionId });
  assert.deepEqual(await ids(), all);
  await agentSessions.delete(first.sessionId);
  assert.deepEqual(await ids(), all.slice(1));
});
