/**
 * A server with many live sessions that is asked to stop. `TROUPE_TEST_SESSIONS` sets their number; each has a kernel of its own.
 */
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

test('a stop ends all sessions within a time that depends on their number, logs this time, and loses no data', async (t) => {
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
  // Each of several workers has some of them.
  const of = (message: RegExp) => server.log.filter(({ msg, sessions }) => message.test(msg) && sessions);
  const begun = of(/^the (server|worker) drains$/);
  const ended = of(/^the (server|worker) has stopped$/);
  for (const lines of [begun, ended]) {
    const sum = (name: string) => lines.reduce((total, line) => total + Number(line[name]), 0);
    assert.deepEqual([sum('sessions'), sum('runs')], [SESSIONS, runIds.length]);
  }
  for (const { worker, signal, sessions, deadlineMs } of begun) {
    assert.deepEqual([signal, deadlineMs], ['SIGTERM', BASE_MS + Number(sessions) * MS_PER_SESSION]);
    const ms = ended.find((line) => line.worker === worker)?.ms;
    assert.ok(Number(ms) < Number(deadlineMs), `it took ${ms} ms`);
    t.diagnostic(`${sessions} sessions ended within ${ms} ms, of ${deadlineMs}`);
  }
  await gone(children);

  const after = await server.again();
  for (const runId of runIds) {
    const { status, error } = await after.client.runs.get(runId);
    assert.deepEqual([status, error?.code], ['failed', 'server_stopped']);
  }
});
