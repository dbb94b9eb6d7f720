import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AuditEntry } from '#src/contract/wire/audit.ts';
import { Shell } from '#test/faces/cli/troupe-process.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

async function entries(): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  for await (const entry of client.eachAudited()) found.push(entry);
  return found;
}

const shown = ({ action, target, outcome, detail }: AuditEntry) =>
  [action, target, outcome, detail].filter((part) => part !== null).join(' ');

test('the audit records changes of members, roles, tokens, workspaces, keys and grants', async () => {
  const before = (await entries()).length;
  await client.members.create({ userId: 'ada', role: 'viewer' });
  await client.members.update('ada', { role: 'editor' });
  const token = await client.accessTokens.create({
    name: 'secret name',
    userId: 'ada',
    scopes: ['workspaceRuntime:connect'],
  });
  const { id: conversation } = await conversationOf();
  await server.request('POST', `/api/v3/agent-sessions/${conversation}/grants`, { body: { userId: 'ada' } });
  await server.request('DELETE', `/api/v3/agent-sessions/${conversation}/grants/ada`);
  await client.accessTokens.delete(token.id);
  await client.members.delete('ada');
  const { id: workspace } = await client.workspaces.create({ name: 'Elsewhere' });
  const KEY = 'sk-never-to-be-seen';
  await server.request('PUT', '/api/v3/models/keys/anthropic', { body: { key: KEY } });
  await server.request('DELETE', '/api/v3/models/keys/anthropic');
  await client.keys.add();
  const rotated = await client.keys.rotate();
  const retired = rotated.items[0]?.id ?? '';
  await client.keys.delete(retired);
  const refused = await server.request('POST', '/api/v3/members', {
    body: { userId: 'owner', role: 'viewer' },
  });
  assert.equal(refused.status, 409);
  const all = (await entries()).slice(before);
  const active = rotated.items.find((key) => key.active)?.id;
  assert.deepEqual(all.map(shown), [
    'member.add ada done viewer',
    'member.change ada done editor',
    `token.create ${token.id} done for ada: workspaceRuntime:connect`,
    `conversation.share ${conversation} done user:ada`,
    `conversation.unshare ${conversation} done user:ada`,
    `token.revoke ${token.id} done`,
    'member.remove ada done',
    `workspace.create ${workspace} done`,
    'model-key.set anthropic done',
    'model-key.delete anthropic done',
    `keyring.add ${all[10]?.target} done`,
    `keyring.rotate ${active} done`,
    `keyring.delete ${retired} done`,
  ]);
  const text = JSON.stringify(all);
  for (const secret of [token.token, KEY, 'secret name']) assert.ok(!text.includes(secret));
  for (const { userId, tokenId, address, requestId, createdAt } of all) {
    assert.deepEqual([userId, address], ['owner', '127.0.0.1']);
    assert.ok(tokenId.startsWith('tok_') && requestId !== '' && Date.parse(createdAt) > 0);
  }
});

async function conversationOf(): Promise<{ id: string }> {
  const { environmentId } = await client.executionEnvironments.create();
  const { sessionId } = await client.agentSessions.open({ environmentId });
  return { id: sessionId };
}

test('the audit records deletions and hand-overs with the acting user, but no refused requests', async () => {
  const before = (await entries()).length;
  const notebook = await openNotebook(server, { mo: 'import marimo as mo', a: 'mo.Html("x" * 100_000)' });
  const run = await notebook.run([]);
  const other = await notebook.run(['mo']);
  const assetId = run.output?.parts.find((part) => part.type === 'asset')?.assetId ?? assert.fail();
  const { id: conversation } = await conversationOf();
  const { id: workspaceId } = await client.workspaces.create({ name: 'Brief' });
  const { slug } = await client.datasources.create({
    slug: 'brief',
    connection: { kind: 'sqlite', path: 'brief.db' },
  });
  await client.members.create({ userId: 'heir', role: 'editor' });
  assert.equal(await refusalOf(client.notebooks.delete(notebook.id)), '409 session_open');
  assert.equal(await refusalOf(client.runs.delete('run_none')), '404 not_found');
  await client.runs.deleteAsset(run.id, assetId);
  await client.runs.delete(other.id);
  await client.agentSessions.handOver(conversation, 'heir');
  await client.agentSessions.delete(conversation);
  await notebook.close();
  await client.notebooks.delete(notebook.id);
  await client.datasources.delete(slug);
  await client.workspaces.delete(workspaceId);
  const all = (await entries()).slice(before);
  const of = /^(notebook|run|run-asset|conversation|datasource|workspace)\.(delete|hand-over)/;
  assert.deepEqual(
    all.map(shown).filter((line) => of.test(line)),
    [
      `run-asset.delete ${run.id} done ${assetId}`,
      `run.delete ${other.id} done`,
      `conversation.hand-over ${conversation} done user:heir`,
      `conversation.delete ${conversation} done`,
      `notebook.delete ${notebook.id} done`,
      `datasource.delete ${slug} done`,
      `workspace.delete ${workspaceId} done`,
    ],
  );
  for (const { userId, tokenId } of all) assert.ok(userId === 'owner' && tokenId.startsWith('tok_'));
});

test('an idempotent request that is sent twice is one entry', async () => {
  const before = (await entries()).length;
  const request = { headers: { 'idempotency-key': 'once' }, body: { userId: 'twice', role: 'viewer' } };
  for (let n = 0; n < 2; n++)
    assert.equal((await server.request('POST', '/api/v3/members', request)).status, 201);
  assert.deepEqual((await entries()).slice(before).map(shown), ['member.add twice done viewer']);
});

test('queries of a notebook are in the audit, without their text, and `troupe audit` lists these queries', async () => {
  await server.request('POST', '/api/v3/datasources', {
    body: { slug: 'numbers', connection: { kind: 'sqlite', path: 'numbers.db' } },
  });
  const notebook = await openNotebook(server, {}, { datasourceSlugs: ['numbers'] });
  const code = `import sqlite3
made = sqlite3.connect("numbers.db")
made.execute("create table n (n integer)")
made.executemany("insert into n values (?)", [(k,) for k in range(100)])
made.commit()
from troupe import datasource
c = datasource("numbers")
for _ in range(30):
    c.execute("select n, 'hunter2' from n limit 10").fetchall()
try:
    c.execute("select nothing from nowhere")
except Exception as error:
    print(type(error).__name__)`;
  assert.equal((await client.code.execute(notebook.id, code)).success, true);
  const queries = await eventually('every query is in the trail', async () => {
    const found = (await entries()).filter(({ action }) => action === 'datasource.query');
    return found.some(({ outcome }) => outcome === 'failed') ? found : undefined;
  });
  const done = queries.filter(({ outcome }) => outcome === 'done');
  const sum = (of: 'statements' | 'rows') => done.reduce((total, { query }) => total + (query?.[of] ?? 0), 0);
  assert.deepEqual([sum('statements'), sum('rows')], [30, 300]);
  for (const { target, userId, query } of queries) {
    assert.deepEqual(
      [target, userId, query?.by, query?.sessionId],
      ['numbers', 'owner', 'notebook', notebook.id],
    );
  }
  assert.ok(!JSON.stringify(queries).includes('hunter2'));
  const shell = new Shell(test, server);
  const listed = await shell.text(['audit', '--action', 'datasource.query']);
  assert.match(listed, /^WHEN +WHO +WHAT +TO +OUTCOME +DETAIL\n/);
  assert.match(listed, /owner +datasource\.query +numbers +done +\d+ statements?, \d+ rows, \d+ ms, by nb_/);
});
