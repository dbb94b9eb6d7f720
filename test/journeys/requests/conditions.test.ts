import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';

const model = await startScriptedModel(test);
const server = await startServer(test, {
  TROUPE_OPENAI_COMPATIBLE_URL: model.url,
  TROUPE_DEFAULT_MODEL: 'openai-compatible/scripted',
});
const { client } = server;
const connection = { kind: 'sqlite', path: 'a.db' };
const STALE = '412 precondition_failed';

test('a notebook is sent again only if it has changed', async () => {
  const { id, updatedAt } = await client.notebooks.create();
  const first = await client.notebooks.getTagged(id);
  assert.equal(first.value?.id, id);
  const again = await client.notebooks.getTagged(id, { ifNoneMatch: first.etag });
  assert.deepEqual(again, { etag: first.etag, value: undefined });
  const answer = await server.request('GET', `/api/v3/notebooks/${id}`, {
    headers: { 'if-none-match': `"other", W/${first.etag}` },
  });
  assert.deepEqual([answer.status, answer.text, answer.headers.etag], [304, '', first.etag]);
  const changed = await client.notebooks.update(id, { expectedUpdatedAt: updatedAt, variables: { A: 'b' } });
  const second = await client.notebooks.getTagged(id, { ifNoneMatch: first.etag });
  assert.deepEqual(second.value, changed);
  assert.notEqual(second.etag, first.etag);
});

test('the entity tag of a notebook names the same state for a compressed and a plain response', async () => {
  const cells = [{ cell_id: 'long', code: `text = '${'x'.repeat(20_000)}'` }];
  const { id, updatedAt } = await client.notebooks.create({ serialization: { cells } });
  const path = `/api/v3/notebooks/${id}`;
  const plain = (await server.request('GET', path)).headers.etag;
  const zipped = (await client.notebooks.getTagged(id)).etag; // fetch asks for gzip by itself
  assert.equal(zipped, `${plain?.slice(0, -1)}-gzip"`);
  assert.equal((await client.notebooks.getTagged(id, { ifNoneMatch: zipped })).value, undefined);
  const known = await server.request('GET', path, { headers: { 'if-none-match': zipped } });
  assert.deepEqual([known.status, known.headers.vary], [304, 'accept-encoding']);
  const change = { expectedUpdatedAt: updatedAt, variables: { A: '1' } };
  await client.notebooks.update(id, change, { ifMatch: zipped });
  assert.equal(await refusalOf(client.notebooks.delete(id, { ifMatch: zipped })), STALE);
});

test('creating and changing a notebook return the same tag as the next read', async () => {
  const created = await server.request('POST', '/api/v3/notebooks', { body: {} });
  const { id, updatedAt } = Object(created.body);
  assert.equal(created.headers.etag, (await client.notebooks.getTagged(id)).etag);
  const changed = await server.request('PATCH', `/api/v3/notebooks/${id}`, {
    body: { expectedUpdatedAt: updatedAt, variables: {} },
  });
  assert.notEqual(changed.headers.etag, created.headers.etag);
  assert.equal(changed.headers.etag, (await client.notebooks.getTagged(id)).etag);
});

test('with If-Match a notebook is changed and deleted only in the state that was read', async () => {
  const { id, updatedAt } = await client.notebooks.create();
  const { etag } = await client.notebooks.getTagged(id);
  const change = { expectedUpdatedAt: updatedAt, variables: { A: '1' } };
  assert.equal(await refusalOf(client.notebooks.update(id, change, { ifMatch: `W/${etag}` })), STALE);
  const changed = await client.notebooks.update(id, change, { ifMatch: etag });
  const next = { expectedUpdatedAt: changed.updatedAt, variables: { A: '2' } };
  assert.equal(await refusalOf(client.notebooks.update(id, next, { ifMatch: etag })), STALE);
  assert.equal(await refusalOf(client.notebooks.delete(id, { ifMatch: etag })), STALE);
  assert.deepEqual(await client.notebooks.get(id), changed);
  const both = { ...next, expectedUpdatedAt: updatedAt };
  assert.equal(await refusalOf(client.notebooks.update(id, both, { ifMatch: '*' })), '409 stale_update');
  const missing = await server.request('PATCH', `/api/v3/notebooks/${id}`, {
    headers: { 'if-match': '*' },
    body: { variables: {} },
  });
  assert.deepEqual([missing.status, Object(missing.body).code], [400, 'invalid_request']);
  await client.notebooks.delete(id, { ifMatch: (await client.notebooks.getTagged(id)).etag });
  assert.equal(await refusalOf(client.notebooks.delete(id, { ifMatch: etag })), '404 not_found');
});

test('an open session refuses a change before its conditions are checked', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { id } = notebook;
  assert.equal(await refusalOf(client.notebooks.delete(id, { ifMatch: '"old"' })), '409 session_open');
  const before = await client.notebooks.getTagged(id);
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: '2' }] });
  const after = await client.notebooks.getTagged(id, { ifNoneMatch: before.etag });
  assert.equal(after.value?.serialization.cells[0]?.code, '2');
});

test('exactly one of ten changes with one tag succeeds', async () => {
  const { id } = await client.notebooks.create();
  const { etag, value } = await client.notebooks.getTagged(id);
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, i) =>
      client.notebooks.update(
        id,
        { expectedUpdatedAt: value!.updatedAt, variables: { I: String(i) } },
        { ifMatch: etag },
      ),
    ),
  );
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('a run has one tag while it runs and another when it has ended', async () => {
  const notebook = await openNotebook(server, { a: 'import time\ntime.sleep(1000)' });
  const runId = await notebook.submit(['a']);
  const running = await client.runs.getTagged(runId);
  assert.deepEqual(await client.runs.getTagged(runId, { ifNoneMatch: running.etag }), {
    etag: running.etag,
    value: undefined,
  });
  await client.runs.cancel(runId);
  const { status } = await client.waitForRun(runId);
  const ended = await client.runs.getTagged(runId, { ifNoneMatch: running.etag });
  assert.deepEqual([status, ended.value?.status], ['cancelled', 'cancelled']);
  assert.equal((await client.runs.getTagged(runId, { ifNoneMatch: ended.etag })).value, undefined);
});

test('a run that has become stale is sent again', async (t) => {
  const first = await startChildServer(t);
  const notebook = await openNotebook(first, { a: 'import time\ntime.sleep(1000)' });
  const runId = await notebook.submit(['a']);
  const { etag } = await first.client.runs.getTagged(runId);
  await first.end('SIGKILL');
  const { client: second } = await first.again();
  const stale = await second.runs.getTagged(runId, { ifNoneMatch: etag });
  assert.equal(stale.value?.stale, true);
  assert.equal((await second.runs.getTagged(runId, { ifNoneMatch: stale.etag })).value, undefined);
});

test('with If-Match a datasource is replaced and deleted only in the state that was read, and never another datasource with the same slug', async () => {
  const { datasources } = client;
  await datasources.create({ slug: 'tagged', connection });
  const { etag } = await datasources.getTagged('tagged');
  assert.equal((await datasources.getTagged('tagged', { ifNoneMatch: etag })).value, undefined);
  assert.equal((await datasources.replace('tagged', { connection }, { ifMatch: etag })).revision, 2);
  assert.equal(await refusalOf(datasources.replace('tagged', { connection }, { ifMatch: etag })), STALE);
  assert.equal(await refusalOf(datasources.delete('tagged', { ifMatch: etag })), STALE);
  assert.equal((await datasources.get('tagged')).revision, 2);
  await datasources.delete('tagged', { ifMatch: (await datasources.getTagged('tagged')).etag });
  await datasources.create({ slug: 'tagged', connection });
  assert.equal((await datasources.getTagged('tagged', { ifNoneMatch: etag })).value?.revision, 1);
  assert.equal(await refusalOf(datasources.replace('tagged', { connection }, { ifMatch: etag })), STALE);
});

test('a conversation is sent again only if it has changed, and with If-Match closed only in the state that was read', async () => {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  const first = await client.agentSessions.getTagged(sessionId);
  assert.equal(
    (await client.agentSessions.getTagged(sessionId, { ifNoneMatch: first.etag })).value,
    undefined,
  );
  model.script((exchange) => exchange.text('Yes.').end());
  const { runId } = await client.agentSessions.prompt(sessionId, 'Well?');
  await client.waitForRun(runId);
  const second = await client.agentSessions.getTagged(sessionId, { ifNoneMatch: first.etag });
  assert.equal(second.value?.entries.length, 2);
  assert.equal(await refusalOf(client.agentSessions.close(sessionId, { ifMatch: first.etag })), STALE);
  const closed = await client.agentSessions.close(sessionId, { ifMatch: second.etag });
  assert.equal(closed.status, 'closed');
  assert.equal(
    await refusalOf(client.agentSessions.close(sessionId, { ifMatch: second.etag })),
    '409 session_closed',
  );
});

test('with If-Match a member is changed and removed only in the state that was read', async () => {
  const { members } = client;
  await members.create({ userId: 'ada', role: 'viewer' });
  const { etag } = await members.getTagged('ada');
  assert.equal((await members.getTagged('ada', { ifNoneMatch: etag })).value, undefined);
  assert.equal((await members.update('ada', { role: 'editor' }, { ifMatch: etag })).role, 'editor');
  assert.equal(await refusalOf(members.update('ada', { role: 'owner' }, { ifMatch: etag })), STALE);
  assert.equal(await refusalOf(members.delete('ada', { ifMatch: etag })), STALE);
  assert.equal(await refusalOf(members.delete('owner', { ifMatch: etag })), '409 last_owner');
  const { etag: current, value } = await members.getTagged('ada', { ifNoneMatch: etag });
  assert.equal(value?.role, 'editor');
  await members.delete('ada', { ifMatch: current });
});

test('a condition reveals nothing that is hidden from the caller', async () => {
  const stranger = server.clientOf(await server.stranger());
  const { id } = await client.notebooks.create();
  const { etag } = await client.notebooks.getTagged(id);
  assert.equal(await refusalOf(stranger.notebooks.getTagged(id, { ifNoneMatch: etag })), '404 not_found');
  assert.equal(await refusalOf(stranger.notebooks.delete(id, { ifMatch: etag })), '404 not_found');
});
