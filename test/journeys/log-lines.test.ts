import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

test('the log says when a kernel has started, when it has ended, and why', async (t) => {
  const server = await startServer(t);
  const notebook = await openNotebook(server, { a: 'import os; os._exit(3)' });
  const lines = (msg: string) =>
    server.log.filter((line) => line.msg === msg && line.sessionId === notebook.id);
  const [started] = lines('a kernel has started');
  assert.equal(started?.level, 'info');
  assert.ok(Number(started?.pid) > 1 && Number(started?.durationMs) > 0);
  await notebook.run(['a']);
  await eventually('the next kernel has started', () => lines('a kernel has started').length === 2);
  const [ended] = lines('a kernel has ended');
  assert.equal(ended?.level, 'info');
  assert.deepEqual([ended?.cause, ended?.pid], ['kernel_exited', started?.pid]);
  assert.match(String(ended?.message), /3/);
  await notebook.close();
  await eventually('its end is logged', () => lines('a kernel has ended').length === 2);
  assert.equal(lines('a kernel has ended')[1]?.cause, 'stopped');
});
