/** Executions: which cells run, in which order, and the record of the run. */
import assert from 'node:assert/strict';
import test from 'node:test';
import type { CacheMode } from '#src/contract/wire/run.ts';
import { cellsOf, openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { traced, traceOf } from './traced-cells.ts';

const server = await startServer(test);
const { notebooks } = server.client;
const trace = traceOf(server);

test('executing a cell first runs each of its stale ancestors once, and no other cell', async () => {
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

test('running a cell again only marks its dependents as stale', async () => {
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
  await events.until(({ type, data }) => type === 'run-status' && data.status === 'completed');
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

test('a run of all cells skips a disabled cell, and a run that names a disabled cell reports it as disabled', async () => {
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

test('a cell that asks for input fails at once, because nobody can answer', async () => {
  const notebook = await openNotebook(server, { a: 'input("name? ")', b: '1' });
  const run = await notebook.run(['a']);
  assert.equal(run.error?.message, 'EOFError: nobody can answer input() or a debugger here');
  assert.equal((await notebook.run(['b'])).status, 'completed');
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
