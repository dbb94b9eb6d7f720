/** The names that code calls with `keep` make, for later calls. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

async function open(codes: Readonly<Record<string, string>>) {
  const notebook = await openNotebook(server, codes);
  const call = (code: string, keep?: boolean) => server.client.code.execute(notebook.id, code, { keep });
  /** Resolves with the text of the value, or of the error. */
  const value = async (code: string, keep = true) => {
    const { output, errors } = await call(code, keep);
    return errors[0] === undefined ? output?.text : `${errors[0].type}: ${errors[0].message}`;
  };
  return { notebook, call, value };
}

test('names that a call with `keep` defines stay for the next call, and may be defined again', async () => {
  const { notebook, value } = await open({ a: 'numbers = [1, 2, 3]' });
  await notebook.run([]);
  assert.equal(await value('total = sum(numbers)'), undefined);
  assert.equal(await value('total'), '6');
  assert.equal(await value('total = total * 10\ntotal'), '60');
  assert.equal(
    await value('import statistics as st\ndef mean():\n    return st.mean(numbers) + extra'),
    undefined,
  );
  assert.equal(await value('extra = 5\nmean()'), '7', 'functions see names that are defined after them');
  assert.equal(await value('_private = 1'), undefined);
  assert.equal(await value('_private'), '1');
  assert.equal(await value('del total'), undefined);
  assert.match(String(await value('total')), /^NameError/);
  await notebook.close();
});

test('a call without `keep` sees no kept names, and keeps no names', async () => {
  const { notebook, value } = await open({});
  await value('kept = 1');
  assert.match(String(await value('kept', false)), /^NameError/);
  await value('lost = 1', false);
  assert.match(String(await value('lost')), /^NameError/);
  assert.equal(await value('kept'), '1');
  await notebook.close();
});

test('cells never see kept names, and a cell that defines such a name replaces its value', async () => {
  const { notebook, value } = await open({ a: 'x = 1', b: 'only_kept', c: 'y = x' });
  await notebook.run(['a']);
  assert.equal(await value('x = 100\nonly_kept = 2\nx'), '100');
  const run = await notebook.run(['c']);
  assert.equal(run.status, 'completed');
  assert.equal(await value('x, y'), '(100, 1)', 'the cell read the notebook’s own x');
  assert.equal((await notebook.run(['b'])).status, 'failed');
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'x = 7' }] });
  assert.equal(await value('x'), '7', 'a cell has defined x again');
  await notebook.close();
});

test('a kept name does not keep the old value of a cell in memory after the cell has run again', async () => {
  const { notebook, value } = await open({
    a: 'import weakref\nclass Large:\n    pass\nlarge = Large()\nwatch = weakref.ref(large)',
    b: 'other = 1',
  });
  await notebook.run([]);
  assert.equal(await value('type(large).__name__'), "'Large'");
  await notebook.run({ type: 'cells', cells: [{ cellId: 'a', code: 'import weakref\nlarge = None' }] });
  assert.equal(
    await value('import gc\ngc.collect() >= 0\n[type(o).__name__ for o in gc.get_objects()].count("Large")'),
    '0',
  );
  await notebook.close();
});

test('kept names outlive a failed call, and end with the kernel', async () => {
  const { notebook, value } = await open({});
  assert.match(String(await value('before = 1\nraise ValueError("no")')), /^ValueError/);
  assert.equal(await value('before'), '1');
  const ended = await notebook.client.code.execute(notebook.id, 'import os\nos._exit(1)', { keep: true });
  assert.equal(ended.success, false);
  await eventually('the session has a new kernel', async () => (await notebook.record()).status === 'ready');
  assert.match(String(await value('before')), /^NameError/);
  await notebook.close();
});
