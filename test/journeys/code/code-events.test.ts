import assert from 'node:assert/strict';
import test from 'node:test';
import { block } from '#test/support/code-block.ts';
import { callCode } from '#test/support/code-call.ts';
import type { EventLog } from '#test/support/event-log.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;

const completed = (events: EventLog, toolCallId: string) =>
  events.until(({ type, data }) => type === 'execution-completed' && data.tool_call_id === toolCallId);

test('the terminal event contains the result and repeats tool_call_id', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using events = await notebook.events();
  const answer = await client.code.execute(notebook.id, 'print("hi")\n1 / 0', { toolCallId: 'call 1/é' });
  assert.deepEqual((await completed(events, 'call 1/é')).data, {
    ...answer,
    tool_call_id: 'call 1/é',
    toolCallId: 'call 1/é',
  });
  assert.equal(answer.success, false);
  const silent = await client.code.execute(notebook.id, '2');
  await client.code.execute(notebook.id, '3', { toolCallId: '' });
  await completed(events, '');
  assert.deepEqual(events.dataOf('execution-completed')[1], silent, 'none was given, none is echoed');
  assert.ok(events.events.every((event) => !('runId' in event) || event.runId === undefined));
  await notebook.close();
});

test('an edit publishes registered and deleted cells, and the session stays busy until the edit is saved and the response is sent', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', gone: 'y = 1' });
  await using events = await notebook.events();
  const from = events.events.length;
  const code = block(
    'ctx.cells["a"].code',
    'ctx.edit_cell("a", code="x = 2")',
    'ctx.delete_cell("gone")',
    'ctx.create_cell("z = x", name="zed", column=1)',
  );
  await client.code.execute(notebook.id, code, { toolCallId: 'edit' });
  const { updatedAt, serialization } = await client.notebooks.get(notebook.id);
  await completed(events, 'edit');
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
  const told = events.events.slice(from);
  const types = told.map(({ type }) => type);
  const zed = serialization.cells[1]!.cell_id;
  assert.deepEqual(events.dataOf('cells-deleted'), [{ cellIds: ['gone'] }]);
  const [a, z] = (await notebook.record()).cells;
  assert.deepEqual(events.dataOf('cells-registered').at(-1), {
    cells: [
      { cellId: 'a', name: '', code: 'x = 2', config: config({}), version: a?.version },
      {
        cellId: zed,
        name: 'zed',
        code: 'z = x',
        config: config({ column: 1, hideCode: true }),
        version: z?.version,
      },
    ],
    order: ['a', zed],
  });
  assert.deepEqual(events.dataOf('notebook.saved'), [{ updatedAt }]);
  assert.ok(types.indexOf('notebook.saved') < types.indexOf('execution-completed'));
  assert.deepEqual(
    told.flatMap((event) => (event.type === 'session.status' ? [event.data.status] : [])),
    ['busy', 'ready'],
  );
  assert.deepEqual(
    types.filter((type) => type === 'run-status'),
    [],
  );
  await notebook.close();
});

test('events of the code itself are published under __scratch__, and events of cells under the ids of the cells', async () => {
  const notebook = await openNotebook(server, { a: 'print("from a")\n42' });
  await using events = await notebook.events();
  const from = events.events.length;
  await client.code.execute(notebook.id, `print("from code")\n${block('ctx.run_cell("a")')}`, {
    toolCallId: 'run',
  });
  await completed(events, 'run');
  assert.equal(events.printed('a'), 'from a\n');
  assert.match(events.printed('__scratch__'), /^from code\n/);
  const ops = events.events.slice(from).flatMap((event) => (event.type === 'cell-op' ? [event.data] : []));
  const statuses = (cellId: string) => ops.flatMap((op) => (op.cellId === cellId ? (op.status ?? []) : []));
  assert.deepEqual(statuses('__scratch__'), ['queued', 'running', 'idle']);
  assert.deepEqual(
    statuses('a').filter((status, i, all) => status !== all[i - 1]),
    ['queued', 'running', 'idle'],
  );
  assert.match(JSON.stringify(ops.find(({ cellId, output }) => cellId === 'a' && output)), />42</);
  await using late = await notebook.events();
  assert.ok(late.events.every(({ data }) => !('cellId' in data) || data.cellId !== '__scratch__'));
  await notebook.close();
});

test('moving a cell publishes the new order of the cells', async () => {
  const notebook = await openNotebook(server, { a: '1', b: '2' });
  await using events = await notebook.events();
  await callCode(client, notebook.id, block('ctx.move_cell("b", before="a")'));
  await events.until(({ type, data }) => type === 'cells-registered' && data.order[0] === 'b');
  assert.deepEqual(events.dataOf('cells-registered').at(-1), { cells: [], order: ['b', 'a'] });
  await notebook.close();
});

function config(members: Record<string, unknown>) {
  return { disabled: false, hideCode: false, column: null, expandOutput: false, ...members };
}
