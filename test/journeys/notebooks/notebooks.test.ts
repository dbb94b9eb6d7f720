import assert from 'node:assert/strict';
import test from 'node:test';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import { cellsOf, openNotebook, statuses } from '#test/support/notebook-fixture.ts';
import { refusalOf, tally } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { notebooks } = server.client;

const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const EMPTY = {
  title: null,
  serialization: { version: '1', app: { options: {} }, cells: [], valid: true, ui_values: {} },
  datasourceSlugs: [],
  variables: {},
};

/** The members that the server assigns are checked and removed. */
function content({ id, url, createdBy, createdAt, updatedBy, updatedAt, ...rest }: Notebook) {
  assert.match(id, /^nb_[0-9a-z]{26}$/);
  assert.equal(url, `/n/${id}/`);
  assert.equal(typeof createdBy, 'string');
  assert.equal(typeof updatedBy, 'string');
  assert.match(createdAt, TIMESTAMP);
  assert.match(updatedAt, TIMESTAMP);
  return rest;
}

test('an empty object creates an empty notebook', async () => {
  const { status, headers, body } = await server.request('POST', '/api/v3/notebooks', { body: {} });
  const created = body as Notebook;
  assert.equal(status, 201);
  assert.equal(headers.location, `/api/v3/notebooks/${created.id}`);
  assert.deepEqual(content(created), EMPTY);
  assert.equal(created.createdAt, created.updatedAt);
  assert.deepEqual(await notebooks.get(created.id), created);
});

test('a notebook is read with the same content that created it', async () => {
  const fields = {
    serialization: {
      version: '7',
      app: { options: { app_title: 'Weather', width: 'full', layout: { deep: [1, null, true] } } },
      cells: [
        { cell_id: 'Hbol', code: 'import marimo as mo', options: { hide_code: true, name: 'setup' } },
        { cell_id: 'a b/c#?%', code: '', options: { something: { of: 'the future' } } },
      ],
      valid: true,
      ui_values: { slider: 3, table: [{ row: 1 }] },
    },
    datasourceSlugs: ['sales.2024', 'not-there-yet'],
    variables: { REGION: 'north', _empty: '' },
  };
  const created = await notebooks.create(fields);
  assert.deepEqual(content(created), { ...fields, title: 'Weather' });
  assert.deepEqual(await notebooks.get(created.id), created);
});

test('every Unicode character is returned unchanged', async () => {
  const planes = [
    0x20, 0x7f, 0x85, 0x3b1, 0x5d0, 0x2028, 0x2029, 0x4e2d, 0xfeff, 0xfffd, 0xffff, 0x1f600, 0x10ffff,
  ];
  const text = `${String.fromCodePoint(...planes)}\t\r\n"'\\ e\u0301 👩‍👩‍👧 ﷽\u0000\u0001`;
  const fields = {
    serialization: {
      cells: [{ cell_id: 'zelle-ü-中-😀', code: `"""${text}"""`, options: { [text]: text } }],
    },
    variables: { TEXT: text.replace('\u0000', '') },
  };
  const { id } = await notebooks.create(fields);
  const read = await notebooks.get(id);
  assert.deepEqual(read.serialization.cells, fields.serialization.cells);
  assert.deepEqual(read.variables, fields.variables);
});

test('omitted members of a serialization get their defaults', async () => {
  const { serialization } = await notebooks.create({
    serialization: { app: {}, cells: [{ cell_id: 'a', code: '1' }] },
  });
  assert.deepEqual(serialization, {
    ...EMPTY.serialization,
    cells: [{ cell_id: 'a', code: '1', options: {} }],
  });
});

test("the server computes whether a notebook is valid and ignores the client's statement", async () => {
  const validOf = async (code: string, valid: boolean) =>
    (await notebooks.create({ serialization: { cells: cellsOf({ a: 'x = 1', b: code }), valid } }))
      .serialization.valid;
  assert.equal(await validOf('x +', true), false);
  assert.equal(await validOf('y = x + 1', false), true);
});

test('a PATCH replaces the members that it names and keeps the rest', async () => {
  const first = await notebooks.create({
    serialization: { cells: cellsOf({ a: '1' }), ui_values: { a: 1 } },
    datasourceSlugs: ['one'],
    variables: { A: '1' },
  });
  const second = await notebooks.update(first.id, {
    expectedUpdatedAt: first.updatedAt,
    variables: { B: '2' },
  });
  assert.deepEqual(content(second), { ...content(first), variables: { B: '2' } });
  const third = await notebooks.update(first.id, {
    expectedUpdatedAt: second.updatedAt,
    serialization: { cells: cellsOf({ b: '2' }) },
    datasourceSlugs: [],
  });
  assert.deepEqual(content(third), {
    title: null,
    serialization: { ...EMPTY.serialization, cells: cellsOf({ b: '2' }) },
    datasourceSlugs: [],
    variables: { B: '2' },
  });
  assert.deepEqual(await notebooks.get(first.id), third);
  assert.equal(third.createdAt, first.createdAt);
});

test('updatedAt increases strictly, even for two writes in one millisecond', async () => {
  const { id, updatedAt } = await notebooks.create({});
  const seen = [updatedAt];
  for (let i = 0; i < 50; i++) {
    const change = { expectedUpdatedAt: seen.at(-1)!, variables: { I: String(i) } };
    seen.push((await notebooks.update(id, change)).updatedAt);
  }
  assert.deepEqual(seen, [...new Set(seen)].sort());
});

test('a PATCH with a stale expectedUpdatedAt is refused until the notebook is read again', async () => {
  const { id, updatedAt } = await notebooks.create({});
  const change = { expectedUpdatedAt: updatedAt, variables: { A: '1' } };
  const changed = await notebooks.update(id, change);
  assert.equal(
    await refusalOf(notebooks.update(id, { ...change, variables: { A: '2' } })),
    '409 stale_update',
  );
  const nonsense = { expectedUpdatedAt: 'yesterday', variables: { A: '2' } };
  assert.equal(await refusalOf(notebooks.update(id, nonsense)), '400 invalid_request');
  const reloaded = await notebooks.get(id);
  assert.deepEqual(reloaded, changed);
  const again = await notebooks.update(id, { ...change, expectedUpdatedAt: reloaded.updatedAt });
  assert.deepEqual(again.variables, { A: '1' });
});

test('expectedUpdatedAt names an instant, in any spelling of RFC 3339', async () => {
  const { id, updatedAt } = await notebooks.create({});
  const spellings: readonly ((ms: number, zulu: string) => string)[] = [
    (_, zulu) => zulu.replace('Z', '+00:00'),
    (_, zulu) => zulu.replace('Z', '000Z'),
    (_, zulu) => zulu.replace(/0*Z$/, 'Z').replace('.Z', 'Z'),
    (ms) => `${new Date(ms + 5.5 * 3_600_000).toISOString().slice(0, -1)}+05:30`,
  ];
  let latest = updatedAt;
  for (const [i, spell] of spellings.entries()) {
    const expectedUpdatedAt = spell(Date.parse(latest), latest);
    latest = (await notebooks.update(id, { expectedUpdatedAt, variables: { I: String(i) } })).updatedAt;
  }
  const after = latest.replace('Z', '001Z');
  const change = { expectedUpdatedAt: after, variables: {} };
  assert.equal(await refusalOf(notebooks.update(id, change)), '409 stale_update');
});

test('exactly one of fifty PATCHes of one version succeeds', async () => {
  const { id, updatedAt } = await notebooks.create({});
  const calls = Array.from({ length: 50 }, (_, i) =>
    notebooks.update(id, { expectedUpdatedAt: updatedAt, variables: { I: String(i) } }),
  );
  assert.deepEqual(await tally(calls), { ok: 1, '409 stale_update': 49 });
});

test('an open notebook can be neither patched nor deleted until its session is closed', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const { id, updatedAt } = notebook.notebook;
  const change = { expectedUpdatedAt: updatedAt, variables: { A: '1' } };
  assert.equal(await refusalOf(notebooks.update(id, change)), '409 session_open');
  assert.equal(await refusalOf(notebooks.delete(id)), '409 session_open');
  await notebook.close();
  assert.deepEqual((await notebooks.update(id, change)).variables, { A: '1' });
  await notebooks.delete(id);
  assert.equal(await refusalOf(notebooks.get(id)), '404 not_found');
});

test('a deleted notebook is gone with its runs and its session', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const run = await notebook.run(['a']);
  await notebook.close();
  const { status, text } = await server.request('DELETE', `/api/v3/notebooks/${notebook.id}`);
  assert.deepEqual({ status, text }, { status: 204, text: '' });
  assert.equal(await refusalOf(notebooks.get(notebook.id)), '404 not_found');
  assert.equal(await refusalOf(notebooks.delete(notebook.id)), '404 not_found');
  assert.equal(await refusalOf(server.client.runs.get(run.id)), '404 not_found');
  assert.equal(await refusalOf(server.client.notebookSessions.get(notebook.id)), '404 not_found');
  assert.deepEqual((await server.client.runs.list({ sessionId: notebook.id })).items, []);
  const opening = server.client.notebookSessions.open({
    notebookId: notebook.id,
    environmentId: notebook.environmentId,
  });
  assert.equal(await refusalOf(opening), '404 not_found');
});

test('the list has a summary of each notebook, oldest first, in pages', async () => {
  const theirs = server.clientOf(await server.stranger()).notebooks;
  const created = [];
  for (let i = 0; i < 5; i++) {
    created.push(
      await theirs.create({
        serialization: {
          app: { options: i === 1 ? { app_title: 'Weather' } : {} },
          cells: cellsOf({ a: '1' }),
        },
        datasourceSlugs: ['sales'],
      }),
    );
  }
  const expected = created.map(({ id, createdBy, createdAt, updatedBy, updatedAt }, i) => ({
    id,
    url: `/n/${id}/`,
    title: i === 1 ? 'Weather' : null,
    cellCount: 1,
    createdBy,
    datasourceSlugs: ['sales'],
    createdAt,
    ...(updatedBy === undefined ? {} : { updatedBy }),
    updatedAt,
  }));
  assert.deepEqual(await theirs.list(), { items: expected, nextCursor: null });
  const first = await theirs.list({ limit: 2 });
  assert.deepEqual(first, { items: expected.slice(0, 2), nextCursor: created[1]!.id });
  const last = await theirs.list({ limit: 3, after: created[1]!.id });
  assert.deepEqual(last, { items: expected.slice(2), nextCursor: null });
  const all = [];
  for await (const summary of theirs.each({ limit: 2 })) all.push(summary);
  assert.deepEqual(all, expected);
});

test('a notebook of a thousand cells is saved, opened and run', async () => {
  const codes = Object.fromEntries(
    Array.from({ length: 1000 }, (_, i) => [`c${i}`, `v${i} = ${i}  # ünïcode`]),
  );
  const notebook = await openNotebook(server, codes);
  const { serialization } = await notebooks.get(notebook.id);
  assert.deepEqual(serialization, { ...EMPTY.serialization, cells: cellsOf(codes) });
  assert.deepEqual(
    statuses(await notebook.run([])),
    Object.fromEntries(Object.keys(codes).map((cellId) => [cellId, 'success'])),
  );
  const { items } = await notebooks.list({ limit: 100 });
  assert.equal(items.find(({ id }) => id === notebook.id)?.cellCount, 1000);
  await notebook.close();
});

test('a create that is sent twice with one Idempotency-Key creates one notebook', async () => {
  const theirs = server.clientOf(await server.stranger()).notebooks;
  const fields = { variables: { A: '1' } };
  const [first, second] = [
    await theirs.create(fields, { idempotencyKey: 'once' }),
    await theirs.create(fields, { idempotencyKey: 'once' }),
  ];
  assert.deepEqual(first, second);
  assert.equal((await theirs.list()).items.length, 1);
  const reused = theirs.create({}, { idempotencyKey: 'once' });
  assert.equal(await refusalOf(reused), '409 idempotency_key_reused');
});
