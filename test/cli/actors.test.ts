import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorStreamEvent } from '#src/wire/actor.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);

test('actors are watched in a terminal and by programs, as the filters say', async (t) => {
  const shell = new Shell(t, server);
  const notebook = await openNotebook(server, { a: 'while True: pass' });
  const args = ['actors', '--watch', '--kind', 'notebook-session', '--find', notebook.id];
  const lines = shell.start(args);
  const json = shell.start([...args, '--json']);
  await eventually('both follow', async () => (await server.client.server()).streams === 2);
  const run = await notebook.submit(['a']);
  await assert.rejects(notebook.submit(['a']), { code: 'session_busy' });
  await lines.until('live.ready → live.busy.running  (execute)');
  await lines.until('refused execute in live.busy.running: The session is busy (session_busy)');
  await json.until('"actor.refused"');
  await server.client.runs.cancel(run);
  await server.client.waitForRun(run);
  for (const command of [lines, json]) command.interrupt();
  const [shown, printed] = await Promise.all([lines.ended, json.ended]);
  assert.ok(!shown.out.includes(run), 'runs were not asked for');
  const events = printed.out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as ActorStreamEvent);
  assert.ok(events.every(({ data }) => 'id' in data && data.id === notebook.id));
  await notebook.close();
});
