import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { ActorStreamEvent } from '#src/contract/wire/actor.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { OWNER, startServer } from '#test/support/server-fixture.ts';
import { troupe } from './captured-terminal.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);

test('actors can be watched in a terminal and by programs, with filters', async (t) => {
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

test('a list reports on standard error the number of omitted actors and the number of silent workers', async (t) => {
  const one = { kind: 'run', id: 'run_1', path: 'running', since: '2026-01-31T12:00:00.000Z', revision: 1 };
  const items = [{ ...one, lastEvents: [] }];
  const pages = new Map([
    [null, { items, nextCursor: 'next', counts: [], silentWorkers: 2 }],
    ['next', { items, nextCursor: null, counts: [], silentWorkers: 0 }],
  ]);
  const answering = createServer((request, response) => {
    const after = new URL(request.url ?? '', 'http://localhost').searchParams.get('after');
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(pages.get(after)));
  }).listen(0, '127.0.0.1');
  t.after(() => answering.close());
  await once(answering, 'listening');
  const { port } = answering.address() as AddressInfo;
  const env = {
    SERVICE_BASE_URL: `http://127.0.0.1:${port}/api/v3`,
    SERVICE_ACCESS_TOKEN: OWNER.token,
    SERVICE_WORKSPACE_ID: OWNER.workspaceId,
  };
  const whole = await troupe(['actors'], { env });
  assert.equal(whole.out.match(/run_1/g)?.length, 2);
  assert.equal(whole.err, "2 of the server's workers did not answer: their actors are missing.\n");
  const first = await troupe(['actors', '--limit', '1'], { env });
  assert.equal(first.out.match(/run_1/g)?.length, 1);
  assert.match(first.err, /^These are the first 1; --limit shows more\.$/m);
});
