import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';

test('the log reports the start and the end of a kernel, and the cause of the end', async (t) => {
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

test('an uncaught error ends the process with a line in the log', async (t) => {
  const script =
    'process.on("SIGUSR2", () => { throw new Error("reached " + process.env.TROUPE_BOOTSTRAP_TOKEN); })';
  const child = await startChildServer(t, {
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`,
  });
  assert.deepEqual(await child.end('SIGUSR2'), { code: 1, signal: null });
  const fatal = child.log.filter(({ level }) => level === 'fatal');
  assert.deepEqual(
    fatal.map(({ msg }) => msg),
    ['The process ends because of an internal error; everything that it has acknowledged is stored.'],
  );
  assert.match(JSON.stringify(fatal), /reached/);
  assert.ok(!JSON.stringify(child.log).includes(OWNER.token));
});
