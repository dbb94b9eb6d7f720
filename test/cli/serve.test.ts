/** `troupe serve`, which runs the server within the command line. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { startServerProcess } from '#test/support/child-server.ts';
import { workersOf } from '#test/support/processes.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { MAIN } from './troupe-process.ts';

test('troupe serve serves with as many workers as the settings say', async (t) => {
  const settings = { ...SETTINGS, ...pythonOfTests(), TROUPE_WORKERS: '2' };
  const server = await startServerProcess(temporaryDirectory(t), settings, [MAIN, 'serve']);
  t.after(() => server.end('SIGKILL'));
  assert.equal(workersOf(server.pid).length, 2);
  assert.equal((await fetch(`${server.baseUrl}/readyz`)).status, 200);
  assert.deepEqual(await server.end('SIGTERM'), { code: 0, signal: null });
});
