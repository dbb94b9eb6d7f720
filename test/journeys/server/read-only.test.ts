/** A server with TROUPE_READ_ONLY, on data that another one has left: it answers every read, and changes nothing. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { PATHS } from '#src/contract/wire/paths.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

/** Operations that are not a GET and store nothing. */
const HARMLESS = new Set(['previewJob', 'createNotebookEventTicket', 'createAgentEventTicket', 'callMcp']);

const before = await startServer(test);
const notebook = await openNotebook(before, { a: '1 + 1' });
const run = await notebook.run(['a']);
await before.request('PUT', '/api/v3/files/kept.txt', { body: 'kept' });
const { sessionId } = await before.client.agentSessions.open({ environmentId: notebook.environmentId });
await before.client.workspaces.create({ name: 'for the audit' });
const server = await before.restart({ TROUPE_READ_ONLY: 'true', TROUPE_KEEP_RUNS_DAYS: '1' });
const { client, dataDir } = server;
const untouched = contentsOf(dataDir);

test('a server that only reads refuses every operation except GET with 503 and a sentence that names the setting', async () => {
  const { body } = await server.request('GET', '/api/v3/openapi.json');
  const documented = Object.entries((body as { paths: Record<string, object> }).paths).flatMap(
    ([path, methods]) =>
      Object.entries(methods as Record<string, { operationId: string }>).map(
        ([method, { operationId }]) => [operationId, method.toUpperCase(), path] as const,
      ),
  );
  const others = Object.entries(PATHS).map(([id, text]) => [id, ...text.split(' ')] as const);
  const writes = [...documented, ...others].filter(
    ([id = '', method = '']) => method !== 'GET' && !HARMLESS.has(id),
  );
  assert.ok(writes.length > 100);
  for (const [id, method = '', path = ''] of writes) {
    const { status, body: problem } = await sendRaw(
      server.baseUrl,
      method,
      path.replace(/\{\w+\}|:\w+\*?/g, notebook.id),
      OWNER,
      method === 'DELETE' ? {} : { body: {} },
    );
    const { code, detail } = problem as { code?: string; detail?: string };
    assert.deepEqual([id, method, status, code], [id, method, 503, 'read_only']);
    assert.match(detail ?? '', /TROUPE_READ_ONLY.*Send changes to the server that owns these data/);
  }
});

test('a server that only reads serves notebooks, sessions, runs, conversations, files, exports, audit, pages and metrics', async () => {
  assert.deepEqual(
    (await client.notebooks.list()).items.map(({ id }) => id),
    [notebook.id],
  );
  const session = await client.notebookSessions.get(notebook.id);
  assert.deepEqual([session.status, session.kernel], ['ready', null]);
  assert.equal((await client.runs.get(run.id)).status, 'completed');
  assert.equal((await client.agentSessions.get(sessionId)).sessionId, sessionId);
  assert.equal((await client.executionEnvironments.get(notebook.environmentId)).status, 'open');
  assert.equal((await client.audit()).items.length > 0, true);
  for (const path of [
    '/healthz',
    '/metrics',
    '/console',
    '/docs',
    '/about',
    '/api/v3/files/kept.txt',
    '/api/v3/server',
    '/api/v3/actors',
    '/api/v3/kernels',
    `/api/v3/notebooks/${notebook.id}/export?format=py`,
    `/api/v3/notebooks/${notebook.id}/versions`,
  ]) {
    const { status, text } = await server.request('GET', path);
    assert.equal(status, 200, `${path}: ${text.slice(0, 200)}`);
  }
});

test('the stream of a session shows its snapshot and starts no kernel', async () => {
  const events = await EventLog.open(client, notebook.id);
  const snapshot = await events.until(({ type }) => type === 'session.snapshot');
  assert.equal((snapshot.data as { status: string }).status, 'ready');
  assert.deepEqual((await client.kernels()).items, []);
});

test('tools of MCP that read work, and tools that change are refused', async () => {
  const call = (name: string, parameters: object) =>
    sendRaw(server.baseUrl, 'POST', '/mcp', OWNER, {
      headers: { accept: 'application/json, text/event-stream' },
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: parameters } },
    });
  assert.match((await call('list_notebooks', {})).text, new RegExp(notebook.id));
  assert.match((await call('write_file', { path: 'new.txt', content: 'new' })).text, /TROUPE_READ_ONLY/);
});

test('readyz is ready and says that the server only reads', async () => {
  const { ready, warnings = [] } = await client.readiness();
  assert.deepEqual([ready, warnings.length], [true, 1]);
  assert.match(warnings[0] ?? '', /^This server only reads \(TROUPE_READ_ONLY\)/);
});

test('a server that only reads changes nothing in the data directory', () => {
  assert.deepEqual(contentsOf(dataDir), untouched);
});

/** Returns a digest of every file in a folder, but for LMDB's table of readers. */
function contentsOf(folder: string): Record<string, string> {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
    (name) => statSync(join(folder, name)).isFile() && !name.endsWith('lock.mdb'),
  );
  return Object.fromEntries(
    files.sort().map((name) => [
      name,
      createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex'),
    ]),
  );
}
