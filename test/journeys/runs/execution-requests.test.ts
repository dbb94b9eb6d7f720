/** Which executions are accepted, and why others are refused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { SubmittedNotebookRun } from '#src/contract/wire/run.ts';
import { openNotebook, results } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { traced, traceOf } from './traced-cells.ts';

const server = await startServer(test);
const { executions, notebooks } = server.client;
const trace = traceOf(server);

test('an accepted execution returns 202 with its run, which is running or has ended', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x + 1' });
  const { status, headers, body } = await server.request(
    'POST',
    `/api/v3/notebook-sessions/${notebook.id}/executions`,
    { body: { type: 'all' } },
  );
  const { runId, lastEventId, ...begun } = body as SubmittedNotebookRun;
  assert.equal(status, 202);
  assert.match(runId, /^run_[0-9a-z]{26}$/);
  assert.equal(headers.location, `/api/v3/runs/${runId}`);
  assert.match(lastEventId, /^[0-9a-f]{10}-\d+$/);
  assert.deepEqual([begun.id, begun.sessionId, begun.status], [runId, notebook.id, 'running']);
  const run = await server.client.waitForRun(runId);
  assert.deepEqual([run.status, run.error], ['completed', null]);
  assert.deepEqual(
    results(run).map(({ cellId, status, outputs }) => ({ cellId, status, outputs })),
    [
      { cellId: 'a', status: 'success', outputs: [] },
      {
        cellId: 'b',
        status: 'success',
        outputs: [{ mimetype: 'text/html', data: "<pre class='text-xs'>2</pre>", text: '2' }],
      },
    ],
  );
  await notebook.close();
});

test('an unknown cell, an empty list and a cell named twice are refused', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const unknown = await problemOf(
    notebook.submit({ type: 'cells', cells: [{ cellId: 'a' }, { cellId: 'zz' }] }),
  );
  assert.deepEqual([unknown.status, unknown.code], [400, 'unknown_cell']);
  assert.deepEqual(unknown.errors, [{ path: '/cells/1/cellId', message: 'there is no cell "zz"' }]);
  assert.equal(await refusalOf(notebook.submit({ type: 'cells', cells: [] })), '400 invalid_request');
  assert.equal(await refusalOf(notebook.submit(['a', 'a'])), '400 duplicate_cell');
  assert.deepEqual((await executions.list(notebook.id)).items, []);
  await notebook.close();
});

test('a busy session refuses another execution, so two executions never overlap', async () => {
  const notebook = await openNotebook(server, {
    a: "import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.005)",
    b: "open('go', 'w')",
  });
  const events = await notebook.events();
  const runId = await notebook.submit(['a']);
  await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'a' && data.status === 'running',
  );
  assert.equal(await refusalOf(notebook.submit(['b'])), '409 session_busy');
  assert.equal(
    await refusalOf(notebook.submit({ type: 'cells', cells: [{ cellId: 'b', code: '2' }] })),
    '409 session_busy',
  );
  const { status, currentRunId } = await notebook.record();
  assert.deepEqual([status, currentRunId], ['busy', runId]);
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  assert.equal((await notebook.record()).currentRunId, null);
  assert.deepEqual(events.dataOf('notebook.saved'), []);
  await events[Symbol.asyncDispose]();
  await notebook.close();
});

test('a session in run mode runs cells but refuses to change them', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' }, { mode: 'run' });
  const withCode = { type: 'cells', cells: [{ cellId: 'a', code: 'x = 2' }] } as const;
  const withConfig = { type: 'cells', cells: [{ cellId: 'a', config: { hideCode: true } }] } as const;
  assert.equal(await refusalOf(notebook.submit(withCode)), '409 session_not_editable');
  assert.equal(await refusalOf(notebook.submit(withConfig)), '409 session_not_editable');
  assert.equal((await notebook.run(['a'])).status, 'completed');
  assert.deepEqual(await notebooks.get(notebook.id), notebook.notebook);
  await notebook.close();
});

test('a malformed execution is refused with the place of the mistake', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const bodies: [unknown, string][] = [
    [{}, '/type'],
    [{ type: 'some' }, '/type'],
    [{ type: 'all', cells: [{ cellId: 'a' }] }, '/cells'],
    [{ type: 'all', cacheMode: 'never' }, '/cacheMode'],
    [{ type: 'cells' }, '/cells'],
    [{ type: 'cells', cells: ['a'] }, '/cells/0'],
    [{ type: 'cells', cells: [{ cellId: 1 }] }, '/cells/0/cellId'],
    [{ type: 'cells', cells: [{ cellId: 'a', code: 1 }] }, '/cells/0/code'],
    [{ type: 'cells', cells: [{ cellId: 'a', source: '1' }] }, '/cells/0/source'],
    [{ type: 'cells', cells: [{ cellId: 'a', config: { name: 'not a name' } }] }, '/cells/0/config/name'],
    [{ type: 'cells', cells: [{ cellId: 'a', config: { column: -1 } }] }, '/cells/0/config/column'],
    [{ type: 'cells', cells: [{ cellId: 'a', config: { disabled: 'yes' } }] }, '/cells/0/config/disabled'],
    [{ type: 'cells', cells: [{ cellId: 'a', config: { colour: 1 } }] }, '/cells/0/config/colour'],
  ];
  for (const [body, path] of bodies) {
    const answer = await server.request('POST', `/api/v3/notebook-sessions/${notebook.id}/executions`, {
      body,
    });
    const { code, errors } = answer.body as { code: string; errors: { path: string }[] };
    assert.deepEqual([answer.status, code], [400, 'invalid_request'], JSON.stringify(body));
    assert.ok(
      errors.some((error) => error.path === path),
      `${JSON.stringify(body)}: ${JSON.stringify(errors)}`,
    );
  }
  await notebook.close();
});

test('an execution that is sent twice with one Idempotency-Key runs once', async () => {
  const notebook = await openNotebook(server, { a: traced('key', 'a') });
  const request = { type: 'all' } as const;
  const first = await executions.submit(notebook.id, request, { idempotencyKey: 'k1' });
  await server.client.waitForRun(first.runId);
  assert.deepEqual(await executions.submit(notebook.id, request, { idempotencyKey: 'k1' }), first);
  assert.equal(trace('key'), 'a');
  await notebook.close();
});
