/** A kernel and its commands. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '#test/support/processes.ts';
import { openKernel, startTestHost, type TestHost, TestKernel } from './kernel-fixture.ts';

let host: TestHost;
before(async () => {
  host = await startTestHost();
});
after(() => host[Symbol.asyncDispose]());

test('opening runs nothing, and reports stale cells and structural errors', async () => {
  const cells = { a: 'x = 1', b: 'y = x', c: 'd = 1', e: 'd = 2', f: 'x = = 1' };
  const kernel = new TestKernel(host, cells);
  const { phases } = await kernel.ready;
  assert.deepEqual(
    [...kernel.verdicts].map(([cellId, { status, stale, errors }]) => [
      cellId,
      status,
      stale,
      errors.map((e) => e.type),
    ]),
    [
      ['a', null, true, []],
      ['b', null, true, []],
      ['c', 'marimo-error', false, ['multiple-defs']],
      ['e', 'marimo-error', false, ['multiple-defs']],
      ['f', null, false, ['syntax']],
    ],
  );
  assert.equal(
    kernel.messages.some((m) => m.op === 'execution' && m.phase === 'running'),
    false,
  );
  assert.deepEqual(
    Object.values(phases).map((ms) => ms > 0),
    [true, true, true],
  );
  assert.equal(kernel.kernel.inFlight, null);
  kernel.kernel.kill();
});

test('a run returns the exact verdict of every cell', async () => {
  const kernel = await openKernel(host, {
    a: 'x = 1',
    b: '1 / 0\ny = x',
    c: 'y',
    d: 'x + 1',
    e: 'import marimo as mo\nmo.stop(True)',
  });
  const run = await kernel.run(['c', 'd', 'e']);
  assert.deepEqual(run.statuses, {
    a: 'success',
    b: 'exception',
    c: 'cancelled',
    d: 'success',
    e: 'stopped',
  });
  assert.deepEqual([run.done.seq, run.done.error, run.done.interrupted], [2, null, false]);
  const changed = await kernel.run({ a: 'x = 2' });
  assert.deepEqual([changed.ran, changed.stale], [['a'], ['b', 'c', 'd']]);
  const fresh = await kernel.run(['d']);
  assert.deepEqual([fresh.ran, (await kernel.run(['d'])).ran], [['d'], ['d']]);
  assert.deepEqual((await kernel.run(['d'], true)).ran, ['a', 'd']);
  kernel.kernel.kill();
});

test('an edit in code mode registers cells as stale, a configuration disables cells, and no cell runs', async () => {
  const kernel = await openKernel(host, { a: 'x = 1', b: 'x' });
  await kernel.run(['b']);
  const cells = ['a', 'b'].map((cellId) => {
    return { cellId, code: kernel.codes.get(cellId)!, name: '_', config: {}, version: 0 };
  });
  const code = `import marimo._code_mode as cm
async with cm.get_context() as ctx:
    ctx.cells["a"].code
    ctx.edit_cell("a", "x = 2")
    ctx.create_cell("x")`;
  const edited = await kernel.outcome(() => kernel.kernel.scratchpad({ code, cells, runId: 'r' }));
  const created = [...edited.done.cells.keys()].find((cellId) => !['a', 'b'].includes(cellId));
  assert.deepEqual(
    [edited.ran.filter((cellId) => cellId !== '__scratch__'), edited.stale.sort()],
    [[], ['a', 'b', created].sort()],
  );
  await kernel.outcome(() => kernel.kernel.configure({ b: { disabled: true } }));
  assert.equal((await kernel.run(['b'])).statuses.b, 'disabled');
  kernel.kernel.kill();
});

test('a check of new code finds the errors that the code would cause, without changing the notebook', async () => {
  const kernel = await openKernel(host, { a: 'x = 1', b: 'x' });
  await kernel.run(['b']);
  const found = kernel.next((m) => m.op === 'bridge-judged');
  const { stale, statuses } = await kernel.outcome(() =>
    kernel.kernel.findErrors({ codes: { a: 'x = b', b: 'b = x' }, cellIds: ['b'] }),
  );
  const judged = await found;
  assert.deepEqual(
    judged.op === 'bridge-judged' &&
      [...judged.errors].map(([cellId, [error]]) => [cellId, error?.type]).sort(),
    [
      ['a', 'cycle'],
      ['b', 'cycle'],
    ],
  );
  assert.deepEqual([stale, statuses], [[], { a: 'success', b: 'success' }]);
  kernel.kernel.kill();
});

test('the scratchpad sees the notebook, and its input() fails at once', async () => {
  const kernel = await openKernel(host, { a: 'x = 41' });
  await kernel.run(['a']);
  const scratch = (code: string) =>
    kernel.outcome(() => kernel.kernel.scratchpad({ code, cells: [], runId: 'r' }));
  assert.equal((await scratch('print(x + 1)')).stdout, '42\n');
  const asked = await scratch('try:\n    input()\nexcept EOFError:\n    print("no one there")');
  assert.equal(asked.stdout, 'no one there\n');
  kernel.kernel.kill();
});

test('a command throws while another one is in flight and after the kernel has ended, because it is a mistake of the caller', async () => {
  const kernel = await openKernel(host, { a: 'while True: pass', b: '1' });
  const run = kernel.run(['a']);
  assert.throws(
    () => kernel.kernel.execute({ cellIds: ['b'], codes: ['1'] }),
    /A kernel has one command in flight/,
  );
  kernel.kernel.kill();
  await assert.rejects(run, /killed/);
  assert.throws(
    () => kernel.kernel.execute({ cellIds: ['b'], codes: ['1'] }),
    /A kernel gets commands only while it is up/,
  );
});

test('a kernel has the given variables and no variable of the server', async (t) => {
  process.env.SERVER_SECRET = 'hidden';
  t.after(() => delete process.env.SERVER_SECRET);
  const kernel = await openKernel(
    host,
    { a: 'import os, json\nprint(json.dumps(dict(os.environ)))' },
    { env: { MINE: 'yes' } },
  );
  const env: Record<string, string> = JSON.parse((await kernel.run(['a'])).stdout);
  assert.deepEqual([env.MINE, env.HOME, env.SERVER_SECRET], ['yes', host.work, undefined]);
  assert.ok(env.PATH?.includes('.venv/bin'));
  kernel.kernel.kill();
});

test('saved values of UI elements are there when the notebook opens', async () => {
  const cells = { a: 'import marimo as mo\ns = mo.ui.slider(0, 10)\ns', b: 'print(s.value)' };
  const kernel = await openKernel(host, cells, { uiValues: { 'a-0': 7 } });
  assert.equal((await kernel.run(['b'])).stdout, '7\n');
  kernel.kernel.kill();
});

test('options of the app that marimo does not know keep no notebook from opening', async () => {
  const appOptions = { width: 'banana', css_file: 7, nonsense: { deep: [] }, sql_output: 'native' };
  const kernel = await openKernel(host, { a: '1' }, { appOptions });
  kernel.kernel.kill();
});

test('running out of memory is an error of the cell, and the kernel lives on', async () => {
  await using limited = await startTestHost({ limits: { memoryBytes: 2 ** 30 } });
  const kernel = await openKernel(limited, { a: 'b = bytearray(2 << 30)', c: '1' });
  const { statuses } = await kernel.run(['a', 'c']);
  assert.deepEqual(statuses, { a: 'exception', c: 'success' });
});

test('10 MiB that are printed arrive complete and in order', async () => {
  const kernel = await openKernel(host, {
    a: 'for i in range(10240): print(f"{i:05d}", "x" * 1017)',
    b: 'print("y" * (10 << 20))',
  });
  await kernel.run({ warm: '1' });
  const { stdout } = await kernel.run(['a']);
  assert.equal(stdout.length, 10 * 2 ** 20);
  const lines = stdout.split('\n').slice(0, -1);
  assert.ok(lines.every((line, i) => Number(line.slice(0, 5)) === i));
  kernel.kernel.kill();
});

test('a kernel whose output nobody reads is paused, and continues where it was', async () => {
  const kernel = await openKernel(host, {
    a: 'for i in range(20):\n    print("x" * 899_999)\n    marks.append(i)',
    m: 'marks = []',
  });
  await kernel.run(['m']);
  kernel.kernel.pause();
  const run = kernel.run(['a']);
  let heard = 0;
  await eventually('nothing is delivered while paused', () => {
    const now = kernel.messages.length;
    const calm = now === heard;
    heard = now;
    return calm;
  });
  assert.equal(kernel.kernel.inFlight !== null, true);
  kernel.kernel.resume();
  assert.equal((await run).stdout.length, 20 * 900_000);
  kernel.kernel.kill();
});
