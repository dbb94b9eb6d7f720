// tier: whole, because it kills servers and workers at random
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { Client } from '#src/contract/client/client.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER } from '#test/support/server-fixture.ts';
import { Victim } from './victim.ts';

test('code that was sent with an idempotency key runs once, even if the server dies before the run is on disk', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-keyed-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const dataDir = join(folder, 'data');
  const points = join(folder, 'points');
  for (const path of [dataDir, points]) mkdirSync(path);
  const start = () => Victim.start(dataDir, undefined, { FAULT_FOLDER: points });
  const ran = (file: string): string => {
    try {
      return readFileSync(join(dataDir, 'workspaces', OWNER.workspaceId, 'files', file), 'utf8');
    } catch {
      return '';
    }
  };

  const victim = await start();
  t.after(() => victim.end('SIGKILL'));
  const [keyed, other] = await Promise.all([openSession(victim.client), openSession(victim.client)]);
  const hold = join(points, 'turn.flushing');
  writeFileSync(hold, '');
  const request = appending('keyed');
  const options = { idempotencyKey: 'once' };
  const first = victim.client.executions.submit(keyed, request, options).catch(() => 'not answered');
  // A run without a key does not wait. Its kernel got its command later, so the run with the key
  // would have run its code by then.
  const second = victim.client.executions.submit(other, appending('other')).catch(() => 'not answered');
  await eventually('the code without a key has run', () => ran('other') !== '');
  victim.end('SIGKILL');
  await victim.over();
  assert.deepEqual(await Promise.all([first, second]), ['not answered', 'not answered']);
  rmSync(hold);

  const next = await start();
  t.after(() => next.end('SIGKILL'));
  const { client } = next;
  await client.notebookSessions.waitUntilReady(keyed);
  const { runId } = await client.executions.submit(keyed, request, options);
  assert.equal((await client.waitForRun(runId)).status, 'completed');
  assert.equal(ran('keyed'), '+');
  next.end('SIGTERM');
  await next.over();
});

/** Returns a request to append a plus sign to a file. */
function appending(file: string) {
  const code = `open("${file}", "a").write("+")`;
  return { type: 'cells', cells: [{ cellId: 'a', code }] } as const;
}

/** Resolves with the id of a session that is ready. */
async function openSession(client: Client): Promise<string> {
  const serialization = { cells: [{ cell_id: 'a', code: '0', options: {} }] };
  const { id } = await client.notebooks.create({ serialization });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  await client.notebookSessions.waitUntilReady(id);
  return id;
}
