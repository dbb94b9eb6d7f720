/** The client of programs, when the answer to a change is lost: the change is repeated, and the repetition is understood. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { ConnectionError } from '#src/contract/client/api-error.ts';
import { Troupe } from '#src/contract/client/troupe.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { type Losses, startCuttingProxy } from '#test/support/stand-ins/cutting-proxy.ts';

const server = await startServer(test);
const access = { accessToken: OWNER.token, workspaceId: OWNER.workspaceId };

/** Returns a client whose connections lead through a proxy that loses requests or answers. */
async function clientThrough(t: TestContext, losses: Losses): Promise<Troupe> {
  const { baseUrl } = await startCuttingProxy(t, server.baseUrl, losses);
  return new Troupe({ ...access, baseUrl });
}

/** A client whose first request gets this status from something before the server, and how many requests it has sent. */
function clientRefusedOnce(status: number, isCarriedOut: boolean) {
  let requests = 0;
  const send: typeof fetch = async (input, init) => {
    if (++requests > 1) return fetch(input, init);
    if (isCarriedOut) await (await fetch(input, init)).arrayBuffer();
    return new Response('{}', { status, headers: { 'retry-after': '0' } });
  };
  return {
    troupe: new Troupe({ ...access, baseUrl: server.baseUrl, fetch: send }),
    requests: () => requests,
  };
}

const newNotebook = () => server.client.notebooks.create({ title: 'before' });
const titleOf = async (id: string) => (await server.client.notebooks.get(id)).title;

test('when the answer to a PATCH is lost, the call rejects with the lost connection, not with the conflict of its repetition', async (t) => {
  const troupe = await clientThrough(t, { answer: /^PATCH/ });
  const { id, updatedAt } = await newNotebook();
  const change = { expectedUpdatedAt: updatedAt, title: 'after' };
  await assert.rejects(troupe.notebooks.update(id, change), ConnectionError);
  assert.equal(await titleOf(id), 'after');
});

test('when the answer to a PATCH with an entity tag is lost, the call rejects with the lost connection', async (t) => {
  const troupe = await clientThrough(t, { answer: /^PATCH/ });
  const { id, updatedAt } = await newNotebook();
  const { etag } = await server.client.notebooks.getTagged(id);
  const change = { expectedUpdatedAt: updatedAt, title: 'after' };
  await assert.rejects(troupe.notebooks.update(id, change, { ifMatch: etag }), ConnectionError);
  assert.equal(await titleOf(id), 'after');
});

test('a PATCH that was lost on its way is repeated, and takes effect', async (t) => {
  const troupe = await clientThrough(t, { request: /^PATCH/ });
  const { id, updatedAt } = await newNotebook();
  const changed = await troupe.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'after' });
  assert.equal(changed.title, 'after');
});

test('a conflict with a change of somebody else is reported unchanged', async (t) => {
  const troupe = await clientThrough(t, {});
  const { id, updatedAt } = await newNotebook();
  await server.client.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'other' });
  const late = troupe.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'after' });
  await assert.rejects(late, { code: 'stale_update' });
});

for (const status of [429, 503])
  test(`a PATCH that a ${status} has refused is repeated, and takes effect`, async () => {
    const { id, updatedAt } = await newNotebook();
    const { troupe, requests } = clientRefusedOnce(status, false);
    await troupe.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'after' });
    assert.deepEqual([await titleOf(id), requests()], ['after', 2]);
  });

test('a PATCH that was carried out and got 502 rejects with the 502, not with a conflict with its own change', async () => {
  const { id, updatedAt } = await newNotebook();
  const { troupe } = clientRefusedOnce(502, true);
  const change = troupe.notebooks.update(id, { expectedUpdatedAt: updatedAt, title: 'after' });
  await assert.rejects(change, { name: 'ApiError', status: 502 });
  assert.equal(await titleOf(id), 'after');
});

test('when the answer to the upload of a new file is lost, the call rejects with the lost connection', async (t) => {
  const troupe = await clientThrough(t, { answer: /^PUT/ });
  const content = new TextEncoder().encode('new');
  await assert.rejects(troupe.files.put('only-new.txt', content, { onlyNew: true }), ConnectionError);
  assert.equal(Buffer.from((await server.client.files.get('only-new.txt')).bytes).toString(), 'new');
});

test('a PUT, a DELETE and a POST whose answers are lost take effect once, and resolve', async (t) => {
  const troupe = await clientThrough(t, { answer: /^(PUT|DELETE|POST)/ });
  await troupe.files.put('lost.txt', new TextEncoder().encode('kept'));
  assert.equal(Buffer.from((await server.client.files.get('lost.txt')).bytes).toString(), 'kept');
  await troupe.files.delete('lost.txt');
  await assert.rejects(server.client.files.get('lost.txt'), { code: 'not_found' });
  const { id } = await troupe.notebooks.create({ title: 'created once' });
  const { items } = await server.client.notebooks.list({ title: 'created once' });
  assert.deepEqual(
    items.map((item) => item.id),
    [id],
  );
});

test('when the answer to the closing of a session is lost, the session is closed and the call resolves', async (t) => {
  const notebook = await openNotebook(server, { one: '1' });
  const troupe = await clientThrough(t, { answer: /^DELETE/ });
  await troupe.notebookSessions.close(notebook.id);
  assert.equal((await notebook.record()).status, 'closed');
});

test('a code call that gets 503 is not repeated, because its code may have run', async () => {
  const notebook = await openNotebook(server, { one: '1' });
  const { troupe, requests } = clientRefusedOnce(503, true);
  const call = troupe.code.execute(notebook.id, 'open("ran", "a").write("x")');
  await assert.rejects(call, { name: 'ApiError', status: 503 });
  assert.equal(requests(), 1);
  assert.equal(Buffer.from((await server.client.files.get('ran')).bytes).toString(), 'x');
  await notebook.close();
});
