// tier: whole, because it kills, fills and restarts servers of several processes
import assert from 'node:assert/strict';
import test from 'node:test';
import { startChildServer } from '#test/support/child-server.ts';
import { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { descendants, eventually, gone } from '#test/support/processes.ts';

test('kill -9 of the server leaves no process, for every state of its kernels', async (t) => {
  const server = await startChildServer(t);
  const busy = {
    'loop of Python': 'print("begun", flush=True)\nwhile True: pass',
    'deaf loop':
      'todo = ["begun"]\nwhile True:\n    try:\n        while True:\n            if todo: print(todo.pop(), flush=True)\n    except BaseException: pass',
    'child of its own': 'import subprocess\nprint("begun", flush=True)\nsubprocess.run(["sleep", "600"])',
    'child that left':
      'import subprocess\nsubprocess.Popen(["sleep", "600"], start_new_session=True)\nprint("begun", flush=True)',
    'forked daemon':
      'import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint("begun", flush=True)\ntime.sleep(600)',
  };
  await openNotebook(server, { a: 'idle = 1' });
  for (const code of Object.values(busy)) {
    const notebook = await openNotebook(server, { a: code });
    const events = await notebook.events();
    await notebook.submit(['a']);
    await events.until(({ type }) => type === 'console-output');
    await events[Symbol.asyncDispose]();
  }
  const processes = descendants(server.pid);
  assert.ok(processes.length > Object.keys(busy).length + 3, `only ${processes.length} processes`);
  await server.end('SIGKILL');
  await gone(processes);
});

test('after kill -9 all acknowledged changes are still there, and sessions return with their bindings', async (t) => {
  const server = await startChildServer(t);
  const notebook = await openNotebook(server, {
    a: 'x = 41',
    b: 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
  });
  const done = await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 42' }] });
  const events = await notebook.events();
  const running = await notebook.submit(['b']);
  await events.until(({ type }) => type === 'console-output');
  await events[Symbol.asyncDispose]();

  const acknowledged: string[] = [];
  const creating = (async () => {
    for (;;) acknowledged.push((await server.client.notebooks.create({ variables: { N: '1' } })).id);
  })().catch(() => {}); // the process ends with the server
  await eventually('some notebooks are acknowledged', () => acknowledged.length >= 25);
  await Promise.all([server.end('SIGKILL'), creating]);

  const after = await server.again();
  const there = new Set<string>();
  for await (const { id } of after.client.notebooks.each({ limit: 100 })) there.add(id);
  assert.deepEqual(
    acknowledged.filter((id) => !there.has(id)),
    [],
  );

  const ready = await after.client.notebookSessions.waitUntilReady(notebook.id);
  assert.deepEqual(
    [
      ready.status,
      ready.environmentId,
      ready.mode,
      ready.currentRunId,
      ready.cells.map(({ stale }) => stale),
    ],
    ['ready', notebook.environmentId, 'edit', null, [true, true]],
  );
  assert.equal((await after.client.notebooks.get(notebook.id)).serialization.cells[0]?.code, 'x = 42');
  assert.deepEqual(await after.client.runs.get(done.id), done);
  const left = await after.client.runs.get(running);
  assert.deepEqual([left.status, left.stale, left.finishedAt], ['running', true, null]);
  assert.deepEqual(await after.client.waitForRun(running), left, 'nobody waits for what nothing will end');
  const late = await EventLog.open(after.client, notebook.id);
  assert.deepEqual(late.dataOf('run-status'), [
    { runId: running, status: 'running', createdBy: 'owner', stale: true },
  ]);
  await late[Symbol.asyncDispose]();
  await after.client.runs.cancel(running);
  assert.equal((await after.client.waitForRun(running)).status, 'cancelled');
  const { runId } = await after.client.executions.submit(notebook.id, {
    type: 'cells',
    cells: [{ cellId: 'a' }],
  });
  assert.equal((await after.client.waitForRun(runId)).status, 'completed');
});
