import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { createClient } from '#src/contract/client/client.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { scrape } from '#test/support/metrics.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';

const PLACE = 'package-sets: the removal of a half-made package set';

test('an incomplete package set that cannot be removed is logged and counted, and the server continues', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-half-made-'));
  t.after(() => {
    execFileSync('rm', ['-rf', dataDir]); // Node.js cannot remove such a folder
  });
  const workshop = join(dataDir, 'packages', '.workshop');
  mkdirSync(join(workshop, '.making-earlier'), { recursive: true });
  // Folders below each other, whose path is longer than the system takes: even root cannot remove them by their path.
  const deeper = 'name=$(printf "%0250d" 0); for i in $(seq 20); do mkdir $name; cd -P $name; done';
  execFileSync('bash', ['-c', deeper], { cwd: join(workshop, '.making-earlier') });
  const settings = { ...SETTINGS, ...pythonOfTests(), TROUPE_KERNEL_NODES: 'none', TROUPE_PACKAGES: 'true' };
  const server = await startServerProcess(dataDir, settings);
  t.after(async () => {
    await server.end('SIGKILL');
  });
  await eventually('the fault is in the log', () => server.log.some(({ place }) => place === PLACE));
  const line = server.log.find(({ place }) => place === PLACE);
  assert.deepEqual([line?.level, line?.msg], ['error', 'something that no request waits for has failed']);
  assert.equal((await scrape(server)).get(`troupe_unawaited_faults_total{place="${PLACE}"}`), 1);
  const { token: accessToken, workspaceId } = OWNER;
  const client = createClient({ baseUrl: server.baseUrl, accessToken, workspaceId });
  await client.notebooks.create({});
  assert.deepEqual(readdirSync(workshop).includes('.making-earlier'), true);
});
