import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createClient } from '#src/contract/client/client.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { seed, TOKEN, WORKSPACE } from '../../bench/seed.ts';

test('a server serves the records that the bench has stored', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-seed-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const { notebookIds } = await seed(dataDir, { notebooks: 3, sessions: 2, runs: 4 });
  const server = await startServerProcess(dataDir, { ...SETTINGS, ...pythonOfTests() });
  t.after(async () => void (await server.end('SIGKILL')));
  const client = createClient({ baseUrl: server.baseUrl, accessToken: TOKEN, workspaceId: WORKSPACE });
  const ids = async (list: Promise<{ items: readonly { readonly id: string }[] }>) =>
    (await list).items.map(({ id }) => id);
  assert.deepEqual(await ids(client.notebooks.list()), notebookIds);
  assert.equal((await ids(client.runs.list())).length, 4);
  const open = await client.notebookSessions.list({ status: 'open' });
  assert.equal(open.items.length, 2);
});
