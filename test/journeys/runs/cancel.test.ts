import assert from 'node:assert/strict';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import {
  type OpenNotebook,
  openNotebook,
  printed,
  results,
  statuses,
} from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { runs } = server.client;

/** Submits, and resolves once the first line of `cellId` was reached. */
async function begin(notebook: OpenNotebook, cellIds: readonly string[], cellId: string): Promise<string> {
  const events = await notebook.events();
  const [runId] = await Promise.all([
    notebook.submit(cellIds),
    events.next(({ type, data }) => type === 'console-output' && data.cellId === cellId),
  ]);
  await events[Symbol.asyncDispose]();
  return runId;
}

const RUN_THE_LOOP = `import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.run_cell("loop")
while True: pass`;

const ENDLESS = {
  'a cell that sleeps': 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
  'a cell that awaits': 'import asyncio\nprint("begun", flush=True)\nawait asyncio.sleep(600)',
  'a loop of Python': 'print("begun", flush=True)\nwhile True: pass',
  'a child process': 'import subprocess\nprint("begun", flush=True)\nsubprocess.run(["sleep", "600"])',
};

for (const [what, code] of Object.entries(ENDLESS)) {
  test(`cancelling ${what} keeps the variables, and cells that never ran are stale`, async () => {
    const notebook = await openNotebook(server, {
      a: 'x = 41',
      b: `${code}\ny = x`,
      c: 'y',
      d: 'print(x + 1)',
    });
    await notebook.run(['a']);
    const runId = await begin(notebook, ['b', 'c'], 'b');
    const { status, headers, body } = await server.request('POST', `/api/v3/runs/${runId}/cancel`);
    assert.deepEqual([status, body], [202, { runId, status: 'cancelling' }]);
    assert.equal(headers.location, `/api/v3/runs/${runId}`);
    const run = await server.client.waitForRun(runId);
    assert.deepEqual([run.status, run.error], ['cancelled', null]);
    assert.deepEqual(statuses(run), { b: 'interrupted', c: 'cancelled' });
    assert.equal(printed(results(run)[0]!).split('\n')[0], 'begun');
    const record = await notebook.record();
    assert.deepEqual(
      [record.status, record.currentRunId, record.cells.map(({ stale }) => stale)],
      ['ready', null, [false, true, true, true]],
    );
    const after = await notebook.run(['d']);
    assert.deepEqual(
      results(after).map((result) => [result.cellId, printed(result)]),
      [['d', '42\n']],
    );
    await notebook.close();
  });
}

test('when a cell ignores the interrupt its kernel is killed after three seconds, and the run reports the kill', async () => {
  const notebook = await openNotebook(server, {
    a: 'x = 1',
    b: 'todo = ["begun"]\nwhile True:\n    try:\n        while True:\n            if todo: print(todo.pop(), flush=True)\n    except BaseException: pass',
  });
  await notebook.run(['a']);
  const runId = await begin(notebook, ['b'], 'b');
  const events = await notebook.events();
  for (let again = 0; again < 3; again++) {
    assert.deepEqual(await runs.cancel(runId), { runId, status: 'cancelling' });
  }
  assert.equal((await runs.get(runId)).status, 'running', 'accepted is not terminal');
  const run = await server.client.waitForRun(runId);
  assert.deepEqual([run.status, run.error?.code], ['cancelled', 'kernel_killed']);
  assert.match(run.error!.message, /variables/);
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
  assert.deepEqual(
    events.dataOf('session.status').map(({ status }) => status),
    ['restoring', 'ready'],
  );
  const { environmentId, mode, cells } = await notebook.record();
  assert.deepEqual(
    [environmentId, mode, cells.map(({ stale }) => stale)],
    [notebook.environmentId, 'edit', [true, true]],
  );
  await events[Symbol.asyncDispose]();
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await notebook.close();
});

test('a run that has ended in any way cannot be cancelled, and stays unchanged', async () => {
  const notebook = await openNotebook(server, {
    good: '1',
    bad: '1 / 0',
    long: 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
  });
  const cancelled = await begin(notebook, ['long'], 'long');
  await runs.cancel(cancelled);
  const ended = [
    await notebook.client.waitForRun(cancelled),
    await notebook.run(['good']),
    await notebook.run(['bad']),
  ];
  assert.deepEqual(
    ended.map(({ status }) => status),
    ['cancelled', 'completed', 'failed'],
  );
  for (const run of ended) {
    assert.equal(await refusalOf(runs.cancel(run.id)), '409 run_finished', run.status);
    assert.deepEqual(await runs.get(run.id), run);
  }
  await notebook.close();
  assert.equal(await refusalOf(runs.cancel(ended[1]!.id)), '409 run_finished');
});

test('a cancel or a client that leaves immediately after the request ends the work and keeps the variables', async () => {
  const notebook = await openNotebook(server, { kept: 'kept = 41', loop: 'while True: pass' });
  await notebook.run(['kept']);
  const blocks = [
    'while True: pass',
    'import asyncio\nawait asyncio.sleep(0)\nwhile True: pass',
    RUN_THE_LOOP,
  ];
  for (let round = 0; round < 3; round++) {
    const runId = await notebook.submit(['loop']);
    await runs.cancel(runId);
    assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
    for (const code of blocks) {
      const left = new AbortController();
      const events = await notebook.events();
      const busy = events.next(({ type, data }) => type === 'session.status' && data.status === 'busy');
      const call = callCode(server.client, notebook.id, code, { signal: left.signal });
      await busy;
      left.abort(new Error('left'));
      await assert.rejects(call, /left/);
      await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
      assert.deepEqual(
        events.dataOf('session.status').map(({ status }) => status),
        ['busy', 'ready'],
      );
      await events[Symbol.asyncDispose]();
    }
  }
  assert.match(String((await callCode(server.client, notebook.id, 'kept + 1')).output?.data), /42/);
});

test('closing a session cancels its run', async () => {
  const notebook = await openNotebook(server, {
    a: 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
    b: '1',
  });
  const runId = await begin(notebook, ['a', 'b'], 'a');
  const closed = await notebook.close();
  assert.deepEqual([closed.status, closed.currentRunId], ['closed', null]);
  const run = await runs.get(runId);
  assert.deepEqual(
    [run.status, run.error],
    [
      'cancelled',
      { code: 'session_closed', message: 'The session was closed by owner while this was running.' },
    ],
  );
});

test('the body of a cancel may be missing or an empty object', async () => {
  const notebook = await openNotebook(server, {
    a: 'import time\nprint("begun", flush=True)\ntime.sleep(600)',
  });
  const runId = await begin(notebook, ['a'], 'a');
  const cancel = async (body: unknown) =>
    (await server.request('POST', `/api/v3/runs/${runId}/cancel`, { body })).status;
  assert.deepEqual([await cancel({ force: true }), await cancel([]), await cancel('{')], [400, 400, 400]);
  assert.equal((await runs.get(runId)).status, 'running');
  assert.equal(await cancel({}), 202);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  await notebook.close();
});
