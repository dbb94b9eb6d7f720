/** Changes of the cells of an open notebook, without a run. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { CellChange } from '#src/contract/wire/cell-changes.ts';
import { block } from '#test/support/code-block.ts';
import { callCode } from '#test/support/code-call.ts';
import { addMember } from '#test/support/members.ts';
import { type OpenNotebook, openNotebook, printed, results } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { problemOf, refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl, owner } = server;

const change = (notebook: OpenNotebook, ...changes: CellChange[]) =>
  client.notebookSessions.change(notebook.id, { changes });
const cellsOf = async (notebook: OpenNotebook) =>
  (await client.notebooks.get(notebook.id)).serialization.cells.map(({ cell_id, code }) => [cell_id, code]);
const versionOf = async (notebook: OpenNotebook, cellId: string) =>
  (await notebook.record()).cells.find((cell) => cell.cellId === cellId)?.version ?? assert.fail(cellId);

test('a request creates, deletes, moves and changes cells, and its answer contains the version of each', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1', b: 'b = 1', c: 'c = 1' });
  const { cells, updatedAt } = await change(
    notebook,
    { type: 'set-code', cellId: 'a', code: 'a = 2' },
    { type: 'create-cell', code: 'd = a + 1', name: 'sum', config: { hideCode: true }, before: 'a' },
    { type: 'create-cell', cellId: 'last', code: '' },
    { type: 'delete-cell', cellId: 'b' },
    { type: 'move-cell', cellId: 'c', before: 'a' },
    { type: 'set-name', cellId: 'c', name: 'other' },
    { type: 'set-config', cellId: 'c', config: { disabled: true, column: 1 } },
    { type: 'set-config', cellId: 'c', config: { disabled: false } },
  );
  const created = cells[1]?.cellId ?? '';
  assert.match(created, /^[A-Za-z]{8}$/);
  assert.deepEqual(
    cells.map(({ cellId }) => cellId),
    ['a', created, 'last', 'b', 'c', 'c', 'c', 'c'],
  );
  assert.deepEqual([cells[3]?.version, typeof cells[0]?.version], [null, 'number']);
  const saved = await client.notebooks.get(notebook.id);
  assert.equal(saved.updatedAt, updatedAt);
  assert.deepEqual(
    saved.serialization.cells.map(({ cell_id, code, options }) => [cell_id, code, options]),
    [
      [created, 'd = a + 1', { name: 'sum', hide_code: true }],
      ['c', 'c = 1', { name: 'other', column: 1 }],
      ['a', 'a = 2', {}],
      ['last', '', {}],
    ],
  );
  const record = await notebook.record();
  for (const { cellId, version } of cells.filter((cell) => cell.version !== null))
    assert.equal(record.cells.find((cell) => cell.cellId === cellId)?.version, version, cellId);
  const run = await notebook.run([created]);
  assert.deepEqual(
    results(run).map(({ cellId, status }) => [cellId, status]),
    [
      ['a', 'success'],
      [created, 'success'],
    ],
  );
  assert.equal((await callCode(client, notebook.id, 'print(d, "b" in globals())')).stdout, '3 False\n');
  await notebook.close();
});

test('changes are made while a cell runs, and reach the kernel before its next work', async () => {
  const wait = "import os, time\nwhile not os.path.exists('changed'): time.sleep(0.01)\nprint(a)";
  const notebook = await openNotebook(server, { a: 'a = 1', wait });
  await using events = await notebook.events();
  const running = await notebook.submit(['wait']);
  await events.until(
    ({ type, data }) => type === 'cell-op' && data.cellId === 'wait' && data.status === 'running',
  );
  await change(notebook, { type: 'set-code', cellId: 'a', code: 'a = 2' });
  assert.deepEqual((await cellsOf(notebook))[0], ['a', 'a = 2']);
  assert.equal((await notebook.record()).status, 'busy');
  writeFileSync(join(server.filesDir, 'changed'), '');
  assert.equal(
    printed(results(await client.waitForRun(running)).find(({ cellId }) => cellId === 'wait')!),
    '1\n',
  );
  const again = await notebook.run(['wait']);
  assert.equal(
    printed(results(again).find(({ cellId }) => cellId === 'wait')!),
    '2\n',
    'its ancestor was stale',
  );
  await notebook.close();
});

test('followers of the events and pages see the changes, and the stored notebook is complete when the answer arrives', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1', b: 'b = a' });
  await notebook.run([]);
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await using events = await notebook.events();
  const { cells, updatedAt } = await change(
    notebook,
    { type: 'set-code', cellId: 'a', code: 'a = 2' },
    { type: 'delete-cell', cellId: 'b' },
  );
  const registered = await events.until(
    ({ type, data }) => type === 'cells-registered' && data.order.length === 1,
  );
  assert.deepEqual(registered.data, {
    cells: [
      {
        cellId: 'a',
        name: '',
        code: 'a = 2',
        config: { disabled: false, hideCode: false, column: null, expandOutput: false },
        version: cells[0]?.version,
      },
    ],
    order: ['a'],
  });
  assert.deepEqual(events.dataOf('cells-deleted'), [{ cellIds: ['b'] }]);
  assert.deepEqual(events.dataOf('notebook.saved').at(-1), { updatedAt });
  await events.until(({ type, data }) => type === 'cell-op' && data.cellId === 'a' && data.stale === true);
  const { transaction } = (await page.next(({ op }) => op === 'notebook-document-transaction')) as {
    transaction?: { changes: unknown[] };
  };
  assert.deepEqual(transaction?.changes, [
    { type: 'set-code', cellId: 'a', code: 'a = 2' },
    { type: 'delete-cell', cellId: 'b' },
  ]);
  await notebook.close();
});

test('a request with a stale version or a stale updatedAt is refused as a whole, and the error names the present versions', async () => {
  const notebook = await openNotebook(server, { a: '1', b: '2' });
  const version = await versionOf(notebook, 'a');
  const { updatedAt: first } = await client.notebooks.get(notebook.id);
  const changed = await change(notebook, { type: 'set-code', cellId: 'a', code: '10', version });
  const present = changed.cells[0]?.version ?? 0;
  const late: CellChange[] = [
    { type: 'set-code', cellId: 'b', code: '20' },
    { type: 'set-code', cellId: 'a', code: '11', version },
  ];
  const problem = await problemOf(change(notebook, ...late));
  assert.deepEqual([problem.status, problem.code], [409, 'stale_update']);
  assert.deepEqual(Object(problem.body).cells, [{ cellId: 'a', version: present }]);
  assert.equal(Object(problem.body).updatedAt, changed.updatedAt);
  for (const one of [
    { type: 'delete-cell', cellId: 'a', version },
    { type: 'move-cell', cellId: 'a', after: 'b', version },
    { type: 'set-name', cellId: 'a', name: 'x', version },
    { type: 'set-config', cellId: 'a', config: {}, version },
  ] as const)
    assert.equal(await refusalOf(change(notebook, one)), '409 stale_update', one.type);
  const whole = { changes: [{ type: 'set-code', cellId: 'b', code: '20' }] } as const;
  const outdated = client.notebookSessions.change(notebook.id, { ...whole, expectedUpdatedAt: first });
  assert.equal(await refusalOf(outdated), '409 stale_update');
  assert.deepEqual(await cellsOf(notebook), [
    ['a', '10'],
    ['b', '2'],
  ]);
  await client.notebookSessions.change(notebook.id, { ...whole, expectedUpdatedAt: changed.updatedAt });
  const named = await change(notebook, { type: 'set-name', cellId: 'a', name: 'x', version: present });
  assert.ok((named.cells[0]?.version ?? 0) > present, 'a name and settings count, too');
  await notebook.close();
});

test('exactly one of fifty simultaneous requests with one version is carried out', async () => {
  const notebook = await openNotebook(server, { a: '0' });
  for (const one of [
    (index: number) => ({ type: 'set-code', cellId: 'a', code: `${index + 1}` }) as const,
    (index: number) => ({ type: 'set-name', cellId: 'a', name: `name${index}` }) as const,
    (index: number) => ({ type: 'set-config', cellId: 'a', config: { column: index } }) as const,
  ]) {
    const version = await versionOf(notebook, 'a');
    const calls = Array.from({ length: 50 }, (_, index) => change(notebook, { ...one(index), version }));
    assert.deepEqual(await tally(calls), { ok: 1, '409 stale_update': 49 });
  }
  await notebook.close();
});

test('a cell version from before a restart, or of a deleted cell with the same id, is stale', async (t) => {
  const own = await startServer(t);
  const notebook = await openNotebook(own, { a: '0' });
  const send = (to: typeof own.client, one: CellChange) =>
    to.notebookSessions.change(notebook.id, { changes: [one] });
  const old = await send(own.client, { type: 'set-code', cellId: 'a', code: '1' });
  const latest = await send(own.client, { type: 'set-code', cellId: 'a', code: '2' });
  await send(own.client, { type: 'delete-cell', cellId: 'a' });
  await send(own.client, { type: 'create-cell', cellId: 'a', code: '3' });
  const { client: later } = await own.restart();
  for (const { cells } of [old, latest]) {
    const version = cells[0]?.version ?? null;
    assert.equal(
      await refusalOf(send(later, { type: 'set-code', cellId: 'a', code: '4', version })),
      '409 stale_update',
    );
  }
  const { cells } = await later.notebookSessions.get(notebook.id);
  await send(later, { type: 'set-code', cellId: 'a', code: '4', version: cells[0]?.version ?? null });
});

test('an agent must read a changed cell again, even if the cell was deleted and created again', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'y = 1' });
  const edit = async (...before: string[]) => {
    const { success, errors } = await callCode(
      client,
      notebook.id,
      block(...before, 'ctx.edit_cell("a", code="x = 2")'),
    );
    return success ? 'edited' : errors[0]?.type;
  };
  await callCode(client, notebook.id, block('[cell.code for cell in ctx.cells]'));
  await change(
    notebook,
    { type: 'set-code', cellId: 'b', code: 'y = 2' },
    { type: 'set-name', cellId: 'a', name: 'n' },
  );
  assert.equal(await edit(), 'edited', 'another cell, and a name');
  await change(notebook, { type: 'set-code', cellId: 'a', code: 'x = 3' });
  assert.equal(await edit(), 'StaleCellError');
  assert.equal(await edit('ctx.cells["a"].code'), 'edited');
  await change(notebook, { type: 'delete-cell', cellId: 'a' });
  await change(notebook, { type: 'create-cell', cellId: 'a', code: 'x = 4' });
  assert.equal(await edit(), 'StaleCellError');
  assert.equal(await edit('ctx.cells["a"].code'), 'edited');
  await notebook.close();
});

const WRONG: readonly (readonly [what: string, code: string, path: string, ...changes: CellChange[]])[] = [
  ['an unknown cell', 'unknown_cell', '/changes/0/cellId', { type: 'set-code', cellId: 'z', code: '' }],
  ['an unknown place', 'unknown_cell', '/changes/0/after', { type: 'move-cell', cellId: 'a', after: 'z' }],
  [
    'a cell that it has deleted',
    'unknown_cell',
    '/changes/1/cellId',
    { type: 'delete-cell', cellId: 'a' },
    { type: 'set-name', cellId: 'a', name: '' },
  ],
  [
    'an id that is taken',
    'duplicate_cell',
    '/changes/0/cellId',
    { type: 'create-cell', cellId: 'a', code: '' },
  ],
  [
    'an id that it has used',
    'duplicate_cell',
    '/changes/1/cellId',
    { type: 'create-cell', cellId: 'n', code: '' },
    { type: 'create-cell', cellId: 'n', code: '' },
  ],
  [
    'the id of a cell that it deletes',
    'duplicate_cell',
    '/changes/1/cellId',
    { type: 'delete-cell', cellId: 'a' },
    { type: 'create-cell', cellId: 'a', code: '' },
  ],
  [
    'a name that is taken',
    'invalid_request',
    '/changes/0/name',
    { type: 'set-name', cellId: 'a', name: 'taken' },
  ],
  [
    'a name that it has used',
    'invalid_request',
    '/changes/0/name',
    { type: 'create-cell', code: '', name: 'n' },
    { type: 'create-cell', code: '', name: 'n' },
  ],
  ['no place for a move', 'invalid_request', '/changes/0', { type: 'move-cell', cellId: 'a' }],
  [
    'two places',
    'invalid_request',
    '/changes/0',
    { type: 'move-cell', cellId: 'a', before: 'b', after: 'b' },
  ],
  [
    'a cell as its own place',
    'invalid_request',
    '/changes/0/before',
    { type: 'move-cell', cellId: 'a', before: 'a' },
  ],
  [
    'a cycle of moves',
    'invalid_request',
    '/changes/2/after',
    { type: 'move-cell', cellId: 'a', after: 'b' },
    { type: 'move-cell', cellId: 'b', after: 'c' },
    { type: 'move-cell', cellId: 'c', after: 'a' },
  ],
  [
    'a version of a cell that it creates',
    'invalid_request',
    '/changes/1/version',
    { type: 'create-cell', cellId: 'n', code: '' },
    { type: 'set-code', cellId: 'n', code: '1', version: 1 },
  ],
  [
    'an id with a control character',
    'invalid_request',
    '/changes/0/cellId',
    { type: 'create-cell', cellId: 'n\u0085', code: '' },
  ],
];

test('a request with one mistake changes nothing, and the error names the place of the mistake', async () => {
  const notebook = await openNotebook(
    server,
    { a: '1', b: '2', c: '3' },
    { options: { c: { name: 'taken' } } },
  );
  const before = await client.notebooks.get(notebook.id);
  for (const [what, code, path, ...changes] of WRONG) {
    const problem = await problemOf(
      change(notebook, ...changes, { type: 'set-code', cellId: 'b', code: 'no' }),
    );
    assert.deepEqual(
      [problem.status, problem.code, problem.errors.map((error) => error.path)],
      [400, code, [path]],
      what,
    );
  }
  const path = `/api/v3/notebook-sessions/${notebook.id}/changes`;
  for (const body of [
    {},
    { changes: [] },
    { changes: [{}] },
    { changes: [{ type: 'set-code', cellId: 'a' }] },
    { changes: [{ type: 'set-code', cellId: '__scratch__', code: '' }] },
    { changes: [{ type: 'set-name', cellId: 'a', name: 'no name' }] },
    { changes: [{ type: 'delete-cell', cellId: 'a', version: 'one' }] },
    { changes: [{ type: 'delete-cell', cellId: 'a', more: 1 }] },
    { changes: [{ type: 'delete-cell', cellId: 'a' }], expectedUpdatedAt: 'yesterday' },
  ])
    assert.equal((await sendRaw(baseUrl, 'POST', path, owner, { body })).status, 400, JSON.stringify(body));
  assert.deepEqual(await client.notebooks.get(notebook.id), before);
  const swapped = await change(
    notebook,
    { type: 'set-name', cellId: 'a', name: 'taken' },
    { type: 'set-name', cellId: 'c', name: '_' },
  );
  assert.equal(swapped.cells.length, 2, 'a name is free when its cell gets another one in the same request');
  const nothing = await change(notebook, { type: 'set-code', cellId: 'b', code: '2' });
  assert.equal(nothing.updatedAt, swapped.updatedAt, 'what is so already is not changed');
  await notebook.close();
});

test('a notebook can have at most 10,000 cells and 16 MiB of code', async () => {
  const notebook = await openNotebook(server, { a: '' });
  const create = (count: number) =>
    Array.from({ length: count }, () => ({ type: 'create-cell', code: '' }) as const);
  await client.notebookSessions.change(notebook.id, { changes: create(9_999) });
  const problem = await problemOf(change(notebook, ...create(1)));
  assert.equal(problem.code, 'invalid_request');
  assert.match(problem.message, /cell 10001.* at most 10000/);
  const tooMany = client.notebookSessions.change(notebook.id, {
    changes: Array.from({ length: 10_001 }, () => ({ type: 'delete-cell', cellId: 'a' }) as const),
  });
  assert.equal(await refusalOf(tooMany), '400 invalid_request');
  const half = '#'.repeat(8 * 2 ** 20);
  const second = (await notebook.record()).cells[1]?.cellId ?? '';
  await change(notebook, { type: 'set-code', cellId: 'a', code: half });
  await change(notebook, { type: 'set-code', cellId: second, code: half });
  const third = (await notebook.record()).cells[2]?.cellId ?? '';
  const large = await problemOf(change(notebook, { type: 'set-code', cellId: third, code: '1' }));
  assert.equal(large.code, 'invalid_request');
  assert.match(large.message, /too large: its code may have 16777216 characters/);
  await change(
    notebook,
    { type: 'set-code', cellId: 'a', code: '' },
    { type: 'set-code', cellId: third, code: '1' },
  );
  await notebook.close();
});

test('requests of viewers, and for sessions that are in run mode, closed or unknown, are refused', async () => {
  const viewer = await addMember(server, 'vera', 'viewer');
  const notebook = await openNotebook(server, { a: '1' });
  const running = await openNotebook(server, { a: '1' }, { mode: 'run' });
  const body = { changes: [{ type: 'set-code', cellId: 'a', code: '2' }] } as const;
  const refused = (id: string, by = client) => refusalOf(by.notebookSessions.change(id, body));
  assert.equal(await refused(notebook.id, viewer.client), '403 role_too_low');
  assert.equal(await refused(running.id), '409 session_not_editable');
  assert.equal(await refused('nb_00000000000000000000000000'), '404 not_found');
  await notebook.close();
  assert.equal(await refused(notebook.id), '409 session_closed');
  assert.deepEqual(await cellsOf(notebook), [['a', '1']]);
  await running.close();
});

test('a change wakes a sleeping session, and its kernel starts with the new code', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1' });
  await client.notebookSessions.hibernate(notebook.id);
  await change(notebook, { type: 'set-code', cellId: 'a', code: 'a = 2' });
  await client.notebookSessions.waitUntilReady(notebook.id);
  await notebook.run([]);
  assert.equal((await callCode(client, notebook.id, 'print(a)')).stdout, '2\n');
  await notebook.close();
});

test('a request that is repeated with its key is carried out once', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const send = () =>
    client.notebookSessions.change(
      notebook.id,
      { changes: [{ type: 'create-cell', code: '2' }] },
      { idempotencyKey: 'create-once' },
    );
  assert.deepEqual(await send(), await send());
  assert.equal((await cellsOf(notebook)).length, 2);
  await notebook.close();
});
