/** A server with many live sessions that is told to stop. `TROUPE_TEST_SESSIONS` says how many; each has a kernel of its own. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { type ChildServer, startChildServer } from '#test/support/child-server.ts';
import { type OpenNotebook, openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, gone } from '#test/support/processes.ts';

const SESSIONS = Number(process.env.TROUPE_TEST_SESSIONS ?? 12);
const AT_ONCE = 6;
const BASE_MS = 4_800;
const MS_PER_SESSION = 50;

async function openMany(server: ChildServer, count: number): Promise<OpenNotebook[]> {
  const opened: OpenNotebook[] = [];
  const openSome = async () => {
    while (opened.length < count) {
      const at = opened.length;
      opened.length++;
      opened[at] = await openNotebook(server, { a: 'import time\nwhile True: time.sleep(1)' });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, openSome));
  return opened;
}

test('all sessions end within a time that fits their number, which is logged, and nothing is lost', async (t) => {
  const server = await startChildServer(t);
  const beganAt = performance.now();
  const notebooks = await openMany(server, SESSIONS);
  t.diagnostic(`${SESSIONS} sessions were open after ${Math.round(performance.now() - beganAt)} ms`);
  const runIds = await Promise.all(
    notebooks.filter((_, i) => i % 2 === 0).map((notebook) => notebook.submit(['a'])),
  );
  const children = descendants(server.pid);
  const { code } = await server.end('SIGTERM');
  assert.equal(code, 0, JSON.stringify(server.log.slice(-5)));
  // Of several workers one has all of them: they are of one workspace.
  const busy = server.log.filter(({ sessions }) => sessions === SESSIONS);
  const begun = busy.find(({ msg }) => /^the (server|worker) drains$/.test(msg));
  const ended = busy.find(({ msg }) => /^the (server|worker) has stopped$/.test(msg));
  assert.ok(begun !== undefined && ended !== undefined, JSON.stringify(server.log.slice(-3)));
  const deadlineMs = BASE_MS + SESSIONS * MS_PER_SESSION;
  const { signal, sessions, runs, deadlineMs: logged } = begun;
  assert.deepEqual(
    { signal, sessions, runs, logged },
    { signal: 'SIGTERM', sessions: SESSIONS, runs: runIds.length, logged: deadlineMs },
  );
  assert.deepEqual([ended.sessions, ended.runs], [SESSIONS, runIds.length]);
  assert.ok(Number(ended.ms) < deadlineMs, `it took ${ended.ms} ms`);
  t.diagnostic(`they ended within ${ended.ms} ms, of ${deadlineMs}`);
  await gone(children, 1_000);

  const after = await server.again();
  for (const runId of runIds) {
    const { status, error } = await after.client.runs.get(runId);
    assert.deepEqual([status, error?.code], ['failed', 'server_stopped']);
  }
});
