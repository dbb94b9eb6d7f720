import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { CacheMode, SubmittedRun } from '#src/wire/run.ts';
import { cellsOf, openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { executions, notebooks, notebookSessions: sessions, executionEnvironments } = server.client;

/** Code that leaves a letter in a file each time it runs, so that what ran, and in which order, can be read. */
function traced(file: string, cellId: string, code = ''): string {
  return `open('${file}', 'a').write('${cellId}')\n${code}`;
}

function trace(file: string): string {
  return readFileSync(join(server.filesDir, file), 'utf8');
}

test('an accepted execution returns 202 with its run, which is running or has ended', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x + 1' });
  const { status, headers, body } = await server.request(
    'POST',
    `/api/v3/notebook-sessions/${notebook.id}/executions`,
    { body: { type: 'all' } },
  );
  const { runId, ...rest } = body as SubmittedRun;
  assert.equal(status, 202);
  assert.match(runId, /^run_[0-9a-z]{26}$/);
  assert.equal(headers.location, `/api/v3/runs/${runId}`);
  assert.deepEqual(rest, { sessionId: notebook.id, status: 'running' });
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

test('executing a cell first runs its stale ancestors, each once, and nothing else', async () => {
  const file = 'diamond';
  const notebook = await openNotebook(server, {
    d: traced(file, 'd', 'left + right'),
    l: traced(file, 'l', 'left = top + 1'),
    r: traced(file, 'r', 'right = top + 2'),
    t: traced(file, 't', 'top = 1'),
    e: traced(file, 'e', 'after = left'),
    o: traced(file, 'o', 'other = 1'),
  });
  const run = await notebook.run(['d']);
  assert.deepEqual(statuses(run), { t: 'success', l: 'success', r: 'success', d: 'success' });
  assert.match(trace(file), /^t(lr|rl)d$/);
  const { cells } = await notebook.record();
  assert.deepEqual(
    cells.map(({ cellId, status }) => `${cellId} ${status}`),
    ['d idle', 'l idle', 'r idle', 't idle', 'e stale', 'o stale'],
  );
  await notebook.run(['d']);
  assert.match(trace(file), /^t(lr|rl)dd$/, 'fresh ancestors keep their results');
  await notebook.close();
});

test('running a cell again marks its dependents as stale without running them', async () => {
  const file = 'descendants';
  const notebook = await openNotebook(server, {
    a: traced(file, 'a', 'x = 1'),
    b: traced(file, 'b', 'y = x'),
    c: traced(file, 'c', 'y'),
  });
  await notebook.run([]);
  await notebook.run(['a']);
  assert.equal(trace(file), 'abca');
  const { cells } = await notebook.record();
  assert.deepEqual(
    cells.map(({ status, stale }) => [status, stale]),
    [
      ['idle', false],
      ['stale', true],
      ['stale', true],
    ],
  );
  await notebook.run(['c']);
  assert.equal(trace(file), 'abcabc');
  await notebook.close();
});

test('code that is sent with an execution replaces the code of the cell and is saved', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'print(x)' });
  const events = await notebook.events();
  const run = await notebook.run({
    type: 'cells',
    cells: [{ cellId: 'b' }, { cellId: 'a', code: 'x = "ünï"' }],
  });
  assert.deepEqual(
    results(run).map((result) => [result.cellId, result.status, printed(result)]),
    [
      ['a', 'success', ''],
      ['b', 'success', 'ünï\n'],
    ],
  );
  const saved = await notebooks.get(notebook.id);
  assert.deepEqual(saved.serialization.cells, cellsOf({ a: 'x = "ünï"', b: 'print(x)' }));
  assert.ok(saved.updatedAt > notebook.notebook.updatedAt);
  assert.deepEqual(events.dataOf('notebook.saved'), [{ updatedAt: saved.updatedAt }]);
  await events[Symbol.asyncDispose]();
  await notebook.close();
});

test('code that is sent with an execution is saved although its run fails', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const run = await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: '1 / 0' }] });
  assert.deepEqual(run.error, {
    code: 'cell_failed',
    message: 'ZeroDivisionError: division by zero',
    cells: ['a'],
  });
  await notebook.close();
  assert.deepEqual((await notebooks.get(notebook.id)).serialization.cells, cellsOf({ a: '1 / 0' }));
});

test('configuration that is sent with an execution is saved and takes effect at once', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x + 1' });
  const config = { name: 'first', hideCode: true, column: 2 };
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', config }] });
  assert.deepEqual((await notebook.record()).cells[0]?.name, 'first');
  await notebook.run({ type: 'cells', cells: [{ cellId: 'b', config: { disabled: true } }] });
  assert.equal((await notebook.record()).cells[1]?.status, 'disabled');
  const read = async () =>
    (await notebooks.get(notebook.id)).serialization.cells.map(({ options }) => options);
  assert.deepEqual(await read(), [{ name: 'first', hide_code: true, column: 2 }, { disabled: true }]);
  const plain = { name: '', hideCode: false, column: null };
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', config: plain }] });
  const run = await notebook.run({ type: 'cells', cells: [{ cellId: 'b', config: { disabled: false } }] });
  assert.deepEqual(await read(), [{}, {}]);
  assert.deepEqual(statuses(run), { b: 'success' });
  await notebook.close();
});

test('a disabled cell is skipped when all cells run, and reported as disabled when it is requested', async () => {
  const file = 'disabled';
  const notebook = await openNotebook(
    server,
    { a: traced(file, 'a', 'x = 1'), b: traced(file, 'b', 'y = x'), c: traced(file, 'c', 'y') },
    { options: { b: { disabled: true } } },
  );
  const all = await notebook.run([]);
  assert.equal(trace(file), 'a');
  assert.equal(statuses(all).a, 'success');
  const run = await notebook.run(['b']);
  assert.deepEqual([run.status, statuses(run)], ['completed', { b: 'disabled' }]);
  assert.equal(trace(file), 'a');
  const { cells } = await notebook.record();
  assert.deepEqual(
    cells.map(({ status }) => status),
    ['idle', 'disabled', 'disabled'],
  );
  await notebook.close();
});

test('no-cache runs fresh dependencies again, default reuses them, and no-store streams the output without saving it', async () => {
  const file = 'modes';
  const notebook = await openNotebook(server, {
    a: traced(file, 'a', 'x = 1'),
    b: traced(file, 'b', 'print("seen"); x + 1'),
  });
  const events = await notebook.events();
  const runWith = (cacheMode?: CacheMode) =>
    notebook.run({
      type: 'cells',
      cells: [{ cellId: 'b' }],
      ...(cacheMode === undefined ? {} : { cacheMode }),
    });
  const cold = await runWith();
  assert.deepEqual([trace(file), cold.output?.stored], ['ab', true]);
  const warm = await runWith('default');
  assert.deepEqual([trace(file), warm.output?.stored, statuses(warm)], ['abb', true, { b: 'success' }]);
  const noCache = await runWith('no-cache');
  assert.deepEqual([trace(file), noCache.output?.stored], ['abbab', true]);
  assert.deepEqual(statuses(noCache), { a: 'success', b: 'success' });
  const noStore = await runWith('no-store');
  assert.equal(trace(file), 'abbabab');
  assert.deepEqual(noStore.output, { stored: false, parts: [] });
  assert.deepEqual(noStore.input, { type: 'cells', cells: [{ cellId: 'b' }], cacheMode: 'no-store' });
  assert.equal(events.printed('b'), 'seen\n'.repeat(4));
  const streamed = events.events.filter(({ type, runId }) => type === 'cell-op' && runId === noStore.id);
  assert.ok(streamed.some(({ data }) => 'output' in data && data.output !== null));
  await events[Symbol.asyncDispose]();
  await notebook.close();
});

test('a name error fails the run, and a new run succeeds once the name exists, without an edit', async () => {
  const notebook = await openNotebook(server, {
    a: 'import builtins',
    b: 'missing_name + 1',
    c: 'builtins.missing_name = 41',
  });
  const failed = await notebook.run(['b']);
  assert.deepEqual(
    [failed.status, failed.error, statuses(failed)],
    [
      'failed',
      { code: 'cell_failed', message: "NameError: name 'missing_name' is not defined", cells: ['b'] },
      { b: 'error' },
    ],
  );
  assert.equal((await notebook.record()).cells[1]?.status, 'error');
  await notebook.run(['c']);
  const again = await notebook.run(['b']);
  assert.deepEqual([again.status, again.error, statuses(again)], ['completed', null, { b: 'success' }]);
  await notebook.close();
});

test('an ancestor that failed runs again together with its dependents', async () => {
  const notebook = await openNotebook(server, {
    a: "import os\nx = int(open('answer').read())",
    b: 'x + 1',
    c: "open('answer', 'w').write('41')",
  });
  const failed = await notebook.run(['b']);
  assert.equal(failed.status, 'failed');
  assert.deepEqual(statuses(failed), { a: 'error', b: 'cancelled' });
  await notebook.run(['c']);
  const again = await notebook.run(['b']);
  assert.deepEqual([again.status, statuses(again)], ['completed', { a: 'success', b: 'success' }]);
  await notebook.close();
});

test('two cells that define one name are refused until one is corrected', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x = 2', c: 'x + 1', d: 'y = 1' });
  const twice = [
    { cellId: 'a', errors: [{ type: 'multiple-defs', message: 'x is also defined in b' }] },
    { cellId: 'b', errors: [{ type: 'multiple-defs', message: 'x is also defined in a' }] },
  ];
  for (const request of [['a'], ['c'], []]) {
    const { status, code, body } = await problemOf(notebook.submit(request));
    assert.deepEqual([status, code], [409, 'structural_error'], request.join());
    const expected = request[0] === 'a' ? twice.slice(0, 1) : twice;
    assert.deepEqual((body as { cells: unknown }).cells, expected, request.join());
  }
  assert.deepEqual((await notebook.record()).cells[0]?.status, 'error');
  assert.equal((await notebook.run(['d'])).status, 'completed');
  assert.equal((await executions.list(notebook.id)).items.length, 1, 'a refused request leaves no run');
  const corrected = await notebook.run({ type: 'cells', cells: [{ cellId: 'b', code: 'z = 2' }] });
  assert.equal(corrected.status, 'completed');
  assert.deepEqual(statuses(await notebook.run(['c'])), { a: 'success', c: 'success' });
  await notebook.close();
});

test('cells that depend on each other in a cycle are refused until one is corrected', async () => {
  const notebook = await openNotebook(server, { a: 'x = y', b: 'y = x', c: 'z = 1' });
  const message = 'the cells depend on each other in a cycle (a → b by x; b → a by y)';
  const { code, body } = await problemOf(notebook.submit(['a']));
  assert.equal(code, 'structural_error');
  assert.deepEqual((body as { cells: unknown }).cells, [
    { cellId: 'a', errors: [{ type: 'cycle', message }] },
    { cellId: 'b', errors: [{ type: 'cycle', message }] },
  ]);
  const corrected = await notebook.run({ type: 'cells', cells: [{ cellId: 'b', code: 'y = 1' }] });
  assert.equal(corrected.status, 'completed');
  assert.equal((await notebook.run(['a'])).status, 'completed');
  await notebook.close();
});

test('code that would cause a structural error is refused, and none of it is saved', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 2' });
  const bad = { type: 'cells', cells: [{ cellId: 'b', code: 'x = 2' }] } as const;
  assert.equal(await refusalOf(notebook.submit(bad)), '409 structural_error');
  assert.deepEqual(await notebooks.get(notebook.id), notebook.notebook);
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('a cell that does not parse fails its run at that cell', async () => {
  const notebook = await openNotebook(server, { a: 'x = = 1', b: 'y = 1' });
  assert.equal(notebook.notebook.serialization.valid, false);
  const run = await notebook.run(['a']);
  assert.deepEqual([run.status, run.error?.code, run.error?.cells], ['failed', 'cell_failed', ['a']]);
  assert.deepEqual(statuses(run), { a: 'error' });
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('new code that does not compile fails the run at its cell, whatever the compiler objects to', async () => {
  const notebook = await openNotebook(server, { a: '1', b: 'y = 1' });
  const reasons = {
    'from math import *': 'import-star: ',
    'x = "\0"': 'syntax: line 1\nSyntaxError: source code string cannot contain null bytes',
    [`${'-'.repeat(5_000)}1`]: 'syntax: line 1\nSyntaxError: the code is nested too deeply',
  };
  for (const [code, reason] of Object.entries(reasons)) {
    for (const cell of [{ cellId: 'a', code }, { cellId: 'a' }]) {
      const run = await notebook.run({ type: 'cells', cells: [cell] });
      assert.deepEqual(
        [run.status, run.error?.code, statuses(run)],
        ['failed', 'cell_failed', { a: 'error' }],
      );
      assert.equal(run.error?.message.slice(0, reason.length), reason);
    }
  }
  assert.equal((await notebook.run(['b'])).status, 'completed');
  await notebook.close();
});

test('a cell that asks for input fails at once, because nobody can answer', async () => {
  const notebook = await openNotebook(server, { a: 'input("name? ")', b: '1' });
  const run = await notebook.run(['a']);
  assert.equal(run.error?.message, 'EOFError: nobody can answer input() or a debugger here');
  assert.equal((await notebook.run(['b'])).status, 'completed');
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

test('while a session is busy another execution is refused, and the two never overlap', async () => {
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

test('of fifty executions at once one is accepted', async () => {
  const wait = "import os, time\nwhile not os.path.exists('all-fifty-are-answered'): time.sleep(0.005)";
  const notebook = await openNotebook(server, { a: traced('fifty', 'a', wait) });
  const calls = Array.from({ length: 50 }, () => notebook.submit(['a']));
  assert.deepEqual(await tally(calls), { ok: 1, '409 session_busy': 49 });
  writeFileSync(join(server.filesDir, 'all-fifty-are-answered'), '');
  const { items } = await executions.list(notebook.id);
  assert.equal(items.length, 1);
  await server.client.waitForRun(items[0]!.id);
  assert.equal(trace('fifty'), 'a');
  await notebook.close();
});

test('a session that is still starting accepts no execution', async () => {
  const { id: notebookId } = await notebooks.create({ serialization: { cells: cellsOf({ a: '1' }) } });
  const { environmentId } = await executionEnvironments.create();
  const { sessionId } = await sessions.open({ notebookId, environmentId });
  assert.equal(await refusalOf(executions.submit(sessionId, { type: 'all' })), '409 session_not_ready');
  await sessions.waitUntilReady(sessionId);
  const { runId } = await executions.submit(sessionId, { type: 'all' });
  assert.equal((await server.client.waitForRun(runId)).status, 'completed');
  await sessions.close(sessionId);
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

test('a chain of three hundred cells runs in order', async () => {
  const codes = Object.fromEntries(
    Array.from({ length: 300 }, (_, i) => [`c${i}`, i === 0 ? 'v0 = 0' : `v${i} = v${i - 1} + 1`]),
  );
  const notebook = await openNotebook(server, codes);
  const run = await notebook.run({ type: 'cells', cells: [{ cellId: 'c299', code: 'print(v298 + 1)' }] });
  assert.equal(run.status, 'completed');
  const all = results(run);
  assert.deepEqual([all.length, all[0]?.cellId, printed(all.at(-1)!)], [300, 'c0', '299\n']);
  await notebook.close();
});
