/**
 * The page of a live session, tested by its requests and its stream. `notebook-in-browser.test.ts`
 * tests it in a browser.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { NotebookPageClient } from '#test/support/notebook-page.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client, baseUrl } = server;

const SLIDER = {
  imports: 'import marimo as mo',
  slider: 'n = mo.ui.slider(1, 50, value=5)\nn',
  square: 'print(n.value ** 2)',
};

async function codeOf(notebookId: string, cellId: string): Promise<string | undefined> {
  const { serialization } = await client.notebooks.get(notebookId);
  return serialization.cells.find(({ cell_id }) => cell_id === cellId)?.code;
}

function elementOf(html: string): string {
  return /object-id=['"]([^'"]+)/.exec(html)?.[1] ?? '';
}

test('a page that sends a refused change of a cell many times gets the code of the cell once', async () => {
  const code = '"long"'.repeat(20_000);
  const notebook = await openNotebook(server, { a: code });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  const create = { type: 'create-cell', cellId: 'a', code: '1', name: '_', config: {} };
  await page.do('document/transaction', { changes: Array(6000).fill(create) });
  const correction = await page.next(({ op }) => op === 'notebook-document-transaction');
  assert.deepEqual(Object(correction.transaction).changes, [{ type: 'set-code', cellId: 'a', code }]);
  await notebook.close();
});

test('a page shows cells and runs them as durable runs, and a moved slider also moves in other pages and runs its dependent cells', async () => {
  const notebook = await openNotebook(server, SLIDER);
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const first = await page.follow();
  assert.deepEqual(first.cell_ids, ['imports', 'slider', 'square']);
  assert.deepEqual(first.codes, Object.values(SLIDER));
  await page.do('kernel/run', { cellIds: ['square'], codes: [SLIDER.square] });
  await page.next(
    ({ op, cell_id, console }) => op === 'cell-op' && cell_id === 'square' && isPrinted(console, '25'),
  );
  const hasEnded = async () =>
    (await client.executions.list(notebook.id)).items.map(({ status }) => status).join() === 'completed';
  await eventually('there is one run, and it is completed', hasEnded);
  const shown = await page.next(
    ({ cell_id, output }) => cell_id === 'slider' && elementOf(String(Object(output).data)) !== '',
  );
  const element = elementOf(String(Object(shown.output).data));
  assert.notEqual(element, '');
  await using other = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  await other.follow();
  await page.do('kernel/set_ui_element_value', { objectIds: [element], values: [8] });
  await page.next(({ cell_id, console }) => cell_id === 'square' && isPrinted(console, '64'));
  const isSet = ({ op }: Readonly<Record<string, unknown>>) => op === 'send-ui-element-message';
  const moved = await other.next(isSet);
  assert.deepEqual(
    [moved.ui_element, Object(moved.message).value],
    [element, 8],
    'other pages move their slider',
  );
  assert.equal(page.messages.some(isSet), false, 'the page that has moved it does not get its value back');
  assert.equal(
    (await client.executions.list(notebook.id)).items.length,
    1,
    'a value of an element makes no run',
  );
  await using later = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.deepEqual((await later.follow()).ui_values, { [element]: 8 });
  await notebook.close();
  await eventually('both pages learn that the session is closed', () => page.isClosed && later.isClosed);
});

const codesSentTo = (page: NotebookPageClient) =>
  page.messages
    .filter(({ op }) => op === 'notebook-document-transaction')
    .flatMap(({ transaction }) => Object(transaction).changes)
    .flatMap(({ type, cellId, code }) => (type === 'set-code' ? [`${cellId}: ${code}`] : []));

test('code that a page sends with a run is saved at once, shown to other pages, and never sent back to this page', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1', b: 'b = 1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using other = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await other.follow();
  await page.do('kernel/run', { cellIds: ['a'], codes: ['a = 2'] });
  assert.equal(await codeOf(notebook.id, 'a'), 'a = 2');
  await other.next(({ op }) => op === 'notebook-document-transaction');
  // marimo's page sends the same change 400 ms later, when somebody else may have changed the cell again
  await other.do('document/transaction', { changes: [{ type: 'set-code', cellId: 'a', code: 'a = 3' }] });
  await page.do('document/transaction', { changes: [{ type: 'set-code', cellId: 'a', code: 'a = 2' }] });
  assert.equal(await codeOf(notebook.id, 'a'), 'a = 3');
  // a run of a new cell comes before the page reports the cell
  await page.do('kernel/run', { cellIds: ['c'], codes: ['print("c is new")'] });
  const create = {
    type: 'create-cell',
    cellId: 'c',
    code: '',
    name: '_',
    config: {},
    before: null,
    after: 'b',
  };
  await page.do('document/transaction', { changes: [create] });
  assert.equal(await codeOf(notebook.id, 'c'), 'print("c is new")');
  await page.next(({ cell_id, console }) => cell_id === 'c' && isPrinted(console, 'c is new'));
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  assert.deepEqual([...new Set(codesSentTo(page))], ['a: a = 3']);
  assert.equal(codesSentTo(other)[0], 'a: a = 2');
  assert.equal(codesSentTo(other).at(-1), 'c: print("c is new")');
  await notebook.close();
});

test('a waiting run executes the code of its request, and text that is typed meanwhile stays and makes its cell stale', async () => {
  const notebook = await openNotebook(server, {
    wait: "import os, time\nwhile not os.path.exists('go-on-typing'): time.sleep(0.01)",
    a: 'a = 1',
  });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await page.do('kernel/run', { cellIds: ['wait'], codes: [(await codeOf(notebook.id, 'wait')) ?? ''] });
  await page.next(({ cell_id, status }) => cell_id === 'wait' && status === 'running');
  await page.do('kernel/run', { cellIds: ['a'], codes: ['print("asked for")'] });
  const typed = [{ type: 'set-code', cellId: 'a', code: 'print("half typ' }];
  await page.do('document/transaction', { changes: typed });
  writeFileSync(join(server.filesDir, 'go-on-typing'), '');
  await page.next(({ cell_id, console }) => cell_id === 'a' && isPrinted(console, 'asked for'));
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  assert.equal(await codeOf(notebook.id, 'a'), 'print("half typ');
  assert.deepEqual(codesSentTo(page), []);
  await page.do('document/transaction', { changes: [{ ...typed[0], code: 'print("typed")' }] });
  await page.do('kernel/run', { cellIds: ['a'], codes: ['print("typed")'] });
  await page.next(({ cell_id, console }) => cell_id === 'a' && isPrinted(console, 'typed'));
  await notebook.close();
});

test('changes of a page that name more cells than a notebook and its order have are refused, and the notebook does not change', async () => {
  const notebook = await openNotebook(server, { a: 'a = 1', b: 'b = 1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  const order = { type: 'reorder-cells', cellIds: Array.from({ length: 10_000 }, () => 'b') };
  const refused = await page.send('document/transaction', { changes: [order, order, order] });
  assert.equal(refused.status, 400);
  assert.match(
    await refused.text(),
    /the changes name 30000 cells, and those of one request may name 20000: send them in/,
  );
  assert.deepEqual(
    (await notebook.record()).cells.map(({ cellId }) => cellId),
    ['a', 'b'],
  );
  await page.do('document/transaction', { changes: [order] });
  await eventually(
    'the cells have the order',
    async () => (await notebook.record()).cells[0]?.cellId === 'b',
  );
});

test('edits of a page are saved at once, even while a cell runs, and reach other pages at once and the kernel before the next run', async () => {
  const notebook = await openNotebook(server, {
    wait: "import os, time\nwhile not os.path.exists('go-on'): time.sleep(0.01)",
    a: 'a = 1',
  });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await using other = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await other.follow();
  await page.do('kernel/run', { cellIds: ['wait'], codes: [(await codeOf(notebook.id, 'wait')) ?? ''] });
  await page.next(({ cell_id, status }) => cell_id === 'wait' && status === 'running');
  await page.do('document/transaction', {
    changes: [
      { type: 'set-code', cellId: 'a', code: 'a = 2' },
      {
        type: 'create-cell',
        cellId: 'b',
        code: 'b = a + 1',
        name: '_',
        config: {},
        before: null,
        after: 'a',
      },
    ],
  });
  assert.deepEqual(
    (await client.notebooks.get(notebook.id)).serialization.cells
      .map(({ cell_id, code }) => [cell_id, code])
      .slice(1),
    [
      ['a', 'a = 2'],
      ['b', 'b = a + 1'],
    ],
  );
  await other.next(({ op }) => op === 'notebook-document-transaction');
  assert.ok(!page.messages.some(({ op }) => op === 'notebook-document-transaction'), 'not its own change');
  // marimo's page sends back a change that it has received. This is not an edit, even if the text
  // has changed since.
  await page.do('document/transaction', { changes: [{ type: 'set-code', cellId: 'a', code: 'a = 3' }] });
  await other.do('document/transaction', { changes: [{ type: 'set-code', cellId: 'a', code: 'a = 2' }] });
  assert.equal(await codeOf(notebook.id, 'a'), 'a = 3');
  await page.do('kernel/run', { cellIds: ['b'], codes: ['b = a + 1'] });
  writeFileSync(join(server.filesDir, 'go-on'), '');
  await page.next(({ cell_id, status }) => cell_id === 'b' && status === 'running');
  const value = async () => {
    const { items } = await client.executions.list(notebook.id);
    return items.length === 2 && items.every(({ status }) => status === 'completed');
  };
  await eventually('both runs are completed', value);
  const result = await callCode(client, notebook.id, 'print(a, b)');
  assert.equal(result.stdout, '3 4\n');
  await notebook.close();
});

test('an error names the cell at fault once, and a cell that only defines a function is labelled as in marimo', async () => {
  const serialization = {
    cells: [
      { cell_id: 'f', code: 'def f():\n    return 1', options: { name: 'f' } },
      { cell_id: 'g', code: 'def g():\n    return 1\ng()', options: { name: 'g' } },
      { cell_id: 'bad', code: 'x = 1 / 0', options: {} },
      { cell_id: 'after', code: 'print(x)', options: {} },
    ],
  };
  const { id } = await client.notebooks.create({ serialization });
  const { environmentId } = await client.executionEnvironments.create();
  await client.notebookSessions.open({ notebookId: id, environmentId });
  await using page = await NotebookPageClient.open(client, baseUrl, id);
  assert.deepEqual((await page.follow()).names, ['*f', 'g', '_', '_']);
  await page.do('document/transaction', { changes: [{ type: 'set-name', cellId: 'f', name: '*f' }] });
  await page.do('kernel/run', { cellIds: ['bad', 'after'], codes: ['x = 1 / 0', 'print(x)'] });
  const { output } = await page.next(
    ({ cell_id, output: shown }) => cell_id === 'after' && Array.isArray(Object(shown).data),
  );
  const [error] = Object(output).data;
  assert.match(error.msg, /\): $/);
  assert.equal(error.raising_cell, 'bad');
  const saved = await client.notebooks.get(id);
  assert.equal(saved.serialization.cells[0]?.options.name, 'f');
  await client.notebookSessions.close(id);
});

test('an interrupt ends the run and drops waiting runs, and edits stay', async () => {
  const notebook = await openNotebook(server, {
    slow: 'import time\nfor _ in range(6000): time.sleep(0.01)',
    a: 'a = 1',
  });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  await page.do('kernel/run', { cellIds: ['slow'], codes: [(await codeOf(notebook.id, 'slow')) ?? ''] });
  await page.next(({ cell_id, status }) => cell_id === 'slow' && status === 'running');
  await page.do('kernel/run', { cellIds: ['a'], codes: ['a = 1'] });
  await page.do('document/transaction', { changes: [{ type: 'set-code', cellId: 'a', code: 'a = 5' }] });
  assert.equal((await page.send('kernel/interrupt')).status, 200);
  await eventually('the session is ready', async () => (await notebook.record()).status === 'ready');
  const { items } = await client.executions.list(notebook.id);
  assert.deepEqual(
    items.map(({ status }) => status),
    ['cancelled'],
  );
  assert.equal(await codeOf(notebook.id, 'a'), 'a = 5');
  await notebook.close();
});

test('the address of a page works once, the token of a page is for one notebook and not for the API, and both end with the access token', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const another = await openNotebook(server, { a: '1' });
  const { token, id: tokenId } = await client.accessTokens.create({
    name: 'page',
    scopes: ['workspaceRuntime:connect'],
  });
  const own = server.clientOf({ token, workspaceId: server.owner.workspaceId });
  const { url } = await own.notebookSessions.page(notebook.id);
  const visit = () => fetch(baseUrl + url, { redirect: 'manual' });
  const head = await fetch(baseUrl + url, { method: 'HEAD', redirect: 'manual' });
  assert.deepEqual(
    [head.status, head.headers.get('set-cookie')],
    [303, null],
    'HEAD does not use the address up',
  );
  const plain = await visit();
  assert.equal(plain.status, 303);
  assert.doesNotMatch(plain.headers.get('set-cookie') ?? '', /Secure/);
  assert.equal((await visit()).status, 401, 'the address was used');
  const { url: behindTls } = await own.notebookSessions.page(notebook.id);
  const proxied = { headers: { 'x-forwarded-proto': 'https' }, redirect: 'manual' } as const;
  const cookie = (await fetch(baseUrl + behindTls, proxied)).headers.get('set-cookie') ?? '';
  assert.match(cookie, /; Secure$/, 'behind TLS the cookie is sent over TLS only');
  await using page = await NotebookPageClient.open(own, baseUrl, notebook.id);
  await page.follow();
  const elsewhere = `${baseUrl}/n/${another.id}/api/usage`;
  const authorization = `Bearer ${page.token}`;
  assert.equal((await fetch(elsewhere, { headers: { authorization } })).status, 401);
  const api = `${baseUrl}/api/v3/notebooks/${notebook.id}`;
  const headers = { authorization, 'service-workspace-id': server.owner.workspaceId };
  assert.equal((await fetch(api, { headers })).status, 401, 'the API takes no token of a page');
  const usage = `${baseUrl}/n/${notebook.id}/api/usage`;
  assert.equal((await fetch(usage, { headers: { authorization } })).status, 200);
  assert.equal((await fetch(usage, { headers: { authorization: `Bearer ${token}` } })).status, 401);
  assert.equal((await fetch(usage, { headers: { authorization: `${authorization}x` } })).status, 401);
  assert.equal((await fetch(`${page.address}page/`)).status, 401, 'no page without the cookie');
  await client.accessTokens.delete(tokenId);
  assert.equal((await fetch(usage, { headers: { authorization } })).status, 401);
  await notebook.close();
  assert.equal((await fetch(`${baseUrl}/n/${another.id}`, { redirect: 'manual' })).status, 308);
  await another.close();
});

test('a page with the access view or interact offers only permitted actions, and all other requests are refused', async () => {
  const notebook = await openNotebook(server, SLIDER);
  const forged = [
    ['document/transaction', { changes: [{ type: 'delete-cell', cellId: 'square' }] }],
    ['kernel/run', { cellIds: ['square'], codes: ['import os; os._exit(1)'] }],
    ['kernel/delete', { cellId: 'square' }],
    ['kernel/set_cell_config', { configs: { square: { disabled: true } } }],
    ['kernel/save_app_config', { config: { width: 'full' } }],
    ['kernel/save', { layout: { type: 'grid', data: {} } }],
    ['kernel/rename', { filename: 'mine.py' }],
    ['kernel/interrupt', {}],
  ] as const;
  for (const access of ['view', 'interact'] as const) {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id, { access });
    const { kiosk, consumer_capabilities } = await page.follow();
    assert.deepEqual(
      [kiosk, consumer_capabilities],
      [true, { edit: false, interact: access === 'interact' }],
    );
    for (const part of ['shutdown-button', 'takeover-button', 'notebook-menu-dropdown-Restart kernel'])
      assert.ok(page.html.includes(`[data-testid="${part}"]`), `${part} is hidden`);
    for (const [path, body] of forged) assert.equal((await page.send(path, body)).status, 403, path);
    const element = await page.send('kernel/set_ui_element_value', { objectIds: ['x-0'], values: [1] });
    assert.equal(element.status, access === 'view' ? 403 : 200);
  }
  assert.equal(await codeOf(notebook.id, 'square'), SLIDER.square);
  await using editor = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.equal(editor.html.includes('shutdown-button'), false);
  await notebook.close();
});

test('the page has no origin and loads from this server only, and malformed requests of the page are refused with a reason', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  const policy = page.headers.get('content-security-policy') ?? '';
  assert.match(policy, /^sandbox allow-scripts(?!.*allow-same-origin)/);
  assert.match(policy, /default-src 'none'.*frame-ancestors 'self'/);
  await page.follow();
  for (const body of [
    { changes: 1 },
    { changes: [{}] },
    { changes: [{ type: 'set-code', cellId: 1 }] },
    [],
    null,
  ]) {
    const response = await page.send('document/transaction', body);
    assert.equal(response.status, 400, JSON.stringify(body));
    assert.equal(response.headers.get('access-control-allow-origin'), '*');
  }
  assert.equal((await page.send('terminal/start', {})).status, 404);
  const preflight = await fetch(`${page.address}api/kernel/run`, {
    method: 'OPTIONS',
    headers: { origin: 'null' },
  });
  assert.equal(preflight.status, 204);
  assert.match(
    preflight.headers.get('access-control-allow-headers') ?? '',
    /authorization.*marimo-session-id/,
  );
  await notebook.close();
  const closed = await page.send('kernel/run', { cellIds: ['a'], codes: ['1'] });
  assert.equal(closed.status, 409);
});

test('only a page that may edit gives an empty notebook its first cell', async () => {
  const notebook = await openNotebook(server, {});
  await using viewer = await NotebookPageClient.open(client, baseUrl, notebook.id, { access: 'view' });
  assert.deepEqual((await viewer.follow()).cell_ids, []);
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  assert.equal(((await page.follow()).cell_ids as string[]).length, 1);
  await viewer.next(({ op }) => op === 'notebook-document-transaction');
  // Another worker may answer, which sees the cell once it is on disk.
  await eventually('the cell is stored', async () => {
    const { serialization } = await client.notebooks.get(notebook.id);
    return serialization.cells.length === 1;
  });
  await notebook.close();
});

test('the only page continues when it reconnects before its earlier stream has ended', async () => {
  const notebook = await openNotebook(server, { a: "print('here')" });
  await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
  await page.follow();
  page.messages.length = 0;
  await page.follow();
  await page.next(({ op }) => op === 'reconnected');
  await page.do('kernel/run', { cellIds: ['a'], codes: ["print('here')"] });
  await page.next(({ cell_id, console }) => cell_id === 'a' && isPrinted(console, 'here'));
  await notebook.close();
});

test('a run requested by a page begins even if the page leaves', async () => {
  const wait = "import os, time\nwhile not os.path.exists('may-end'): time.sleep(0.01)";
  const notebook = await openNotebook(server, { wait, a: 'a = 1' });
  {
    await using page = await NotebookPageClient.open(client, baseUrl, notebook.id);
    await page.follow();
    await page.do('kernel/run', { cellIds: ['wait'], codes: [wait] });
    await page.next(({ cell_id, status }) => cell_id === 'wait' && status === 'running');
    await page.do('kernel/run', { cellIds: ['a'], codes: ['a = 1'] });
  }
  writeFileSync(join(server.filesDir, 'may-end'), '');
  await eventually('both runs are completed', async () => {
    const { items } = await client.executions.list(notebook.id);
    return items.length === 2 && items.every(({ status }) => status === 'completed');
  });
  await notebook.close();
});

test('after a restart of the server a page continues with its token, and shows the notebook unchanged', async (t) => {
  const own = await startServer(t);
  const notebook = await openNotebook(own, { a: "print('here')" });
  await using page = await NotebookPageClient.open(own.client, own.baseUrl, notebook.id);
  await page.follow();
  await page.do('kernel/run', { cellIds: ['a'], codes: ["print('here')"] });
  await page.next(({ cell_id, console }) => cell_id === 'a' && isPrinted(console, 'here'));
  await eventually('the run has ended', async () => (await notebook.record()).status === 'ready');
  page.moveTo((await own.restart()).baseUrl);
  page.messages.length = 0;
  const state = await page.follow();
  assert.deepEqual(state.codes, ["print('here')"]);
  assert.deepEqual(state.last_execution_time, {}, 'it has not run in the new kernel');
  await page.next(({ cell_id, console }) => cell_id === 'a' && isPrinted(console, 'here'));
});

function printed(console: unknown): unknown {
  return Object(console).data;
}

/** Returns whether this text was printed. marimo may send its line break in a further message. */
function isPrinted(console: unknown, text: string): boolean {
  return String(printed(console)).trimEnd() === text;
}
