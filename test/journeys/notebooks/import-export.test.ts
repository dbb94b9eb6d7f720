import assert from 'node:assert/strict';
import test from 'node:test';
import type { Cell, Notebook, NotebookFileFormat } from '#src/contract/wire/notebook.ts';
import { cellsOf, openNotebook, statuses, withoutVersions } from '#test/support/notebook-fixture.ts';
import { problemOf, refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { notebooks, notebookSessions, executionEnvironments } = server.client;

const CODES = {
  setup: 'import marimo as mo',
  numbers: 'xs = [1, 2, 3]\n\n\nprint("Ünicode 😀", xs)',
  double: 'def double(x):\n    """Twice."""\n    return x * 2',
  shown: '[double(x) for x in xs]',
  late: 'x: int = (\n    1\n)  # </script><script>alert(1)</script>',
  broken: 'y = (',
};
const OPTIONS = {
  numbers: { hide_code: true, name: 'numbers' },
  shown: { disabled: true },
  late: { hide_code: true, name: 'late' },
};
const APP = { options: { app_title: 'Über: a "test"', width: 'medium' } };

const saved = await notebooks.create({ serialization: { app: APP, cells: cellsOf(CODES, OPTIONS) } });

async function textOf(id: string, format: NotebookFileFormat | 'html'): Promise<string> {
  return Buffer.from((await notebooks.export(id, format)).bytes).toString('utf8');
}

/** Cells without their ids, which no format has. */
const plain = (cells: readonly Cell[]) => cells.map(({ code, options }) => ({ code, options }));

for (const format of ['py', 'ipynb', 'md'] as const) {
  test(`a notebook that is exported to .${format} and imported again keeps its code, order, names and options`, async () => {
    const content = await textOf(saved.id, format);
    const back = await notebooks.import({ format, content });
    // A function that stands alone in a cell becomes a function of the file, which needs a name.
    const named = (cell: Cell) => (format === 'py' && cell.cell_id === 'double' ? { name: 'double' } : {});
    assert.deepEqual(
      plain(back.serialization.cells),
      saved.serialization.cells.map((cell) => ({
        code: cell.code,
        options: { ...cell.options, ...named(cell) },
      })),
    );
    assert.deepEqual(back.serialization.app, APP);
    assert.deepEqual(
      { ...back.serialization, app: {}, cells: [] },
      { version: '1', app: {}, cells: [], valid: false, ui_values: {} },
    );
    assert.deepEqual(await notebooks.get(back.id), back);
    assert.equal(await textOf(back.id, format), content);
  });
}

test('an imported notebook is listed, opens and runs like any other', async () => {
  const { status, headers, body } = await server.request('POST', '/api/v3/notebooks/import', {
    body: { format: 'md', content: '# Prose\n\n```python {.marimo}\nx = 1\n```\n' },
  });
  const { id, serialization } = body as Notebook;
  assert.deepEqual([status, headers.location], [201, `/api/v3/notebooks/${id}`]);
  assert.deepEqual(
    serialization.cells.map((cell) => cell.code),
    ['import marimo as mo', 'mo.md(r"""\n# Prose\n""")', 'x = 1'],
  );
  const { environmentId } = await executionEnvironments.create();
  await notebookSessions.open({ notebookId: id, environmentId });
  await notebookSessions.waitUntilReady(id);
  const { runId } = await server.client.executions.submit(id, { type: 'all' });
  const ran = statuses(await server.client.waitForRun(runId));
  assert.deepEqual(Object.values(ran), ['success', 'success', 'success']);
  await notebookSessions.close(id);
});

test('a script that is not a notebook is converted into a notebook', async () => {
  const { serialization } = await notebooks.import({
    format: 'py',
    content: '# %%\nx = 1\n\n# %%\nprint(x)\n',
  });
  assert.deepEqual(plain(serialization.cells), [
    { code: 'x = 1', options: {} },
    { code: 'print(x)', options: {} },
  ]);
});

const jupyter = (...cells: readonly unknown[]) =>
  JSON.stringify({ cells, metadata: {}, nbformat: 4, nbformat_minor: 5 });

const BROKEN: readonly (readonly [format: NotebookFileFormat, content: string, where: string])[] = [
  ['py', 'x = 1\ny = = 2\n', 'line 2, column 5: invalid syntax.'],
  ['py', 'x = 1\n\0', 'line 2: source code string cannot contain null bytes.'],
  ['ipynb', '{"cells": [\n  1,', 'line 2, column 5: Expecting value.'],
  ['ipynb', '[]', 'line 1: a Jupyter notebook is a JSON object.'],
  ['ipynb', '{}', 'it has no list of cells.'],
  ['ipynb', jupyter({ cell_type: 'code', source: 'x' }, { cell_type: 'code' }), 'cell 2: no source text.'],
  ['ipynb', jupyter({ cell_type: 'code', source: 'x' }, 7), 'cell 2: not an object.'],
  ['ipynb', '['.repeat(200_000), 'it is nested too deeply.'],
  ['md', '---\ntitle: [x\n---\n# Hi\n', "line 2, column 10: expected ',' or ']', but got '<stream end>'."],
];

for (const [format, content, where] of BROKEN) {
  test(`a .${format} file is refused with the place where it is broken: ${where}`, async () => {
    const { status, code, message, errors } = await problemOf(notebooks.import({ format, content }));
    assert.deepEqual([status, code], [400, 'unreadable_notebook']);
    assert.deepEqual(errors, [{ path: '/content', message: where }]);
    assert.ok(message.includes(`Not readable as .${format}: ${where}`), message);
  });
}

test('a file with half of a surrogate pair is refused', async () => {
  const content = String.raw`{"cells": [{"cell_type": "code", "source": "x = '\ud800'", "metadata": {}}]}`;
  const { status, code } = await problemOf(notebooks.import({ format: 'ipynb', content }));
  assert.deepEqual([status, code], [400, 'unreadable_notebook']);
});

test('a malformed import is refused before the file is parsed', async () => {
  const post = async (body: unknown) => {
    const answer = await server.request('POST', '/api/v3/notebooks/import', { body });
    return [answer.status, (answer.body as { code: string }).code];
  };
  assert.deepEqual(await post({ format: 'html', content: '' }), [400, 'invalid_request']);
  assert.deepEqual(await post({ format: 'py' }), [400, 'invalid_request']);
  assert.deepEqual(await post({ format: 'py', content: 1 }), [400, 'invalid_request']);
  assert.deepEqual(await post({ format: 'py', content: '', name: 'x' }), [400, 'invalid_request']);
  assert.deepEqual(await refusalOf(notebooks.export('nb_nothing', 'py')), '404 not_found');
  const asked = await server.request('GET', `/api/v3/notebooks/${saved.id}/export?format=pdf`);
  assert.equal(asked.status, 400);
});

test('an import of 16 MiB is accepted, and an import of one byte more is refused', async () => {
  const limit = 16 * 1024 * 1024;
  const around = Buffer.byteLength(JSON.stringify({ format: 'py', content: '#' }));
  const body = (bytes: number) => JSON.stringify({ format: 'py', content: `#${' '.repeat(bytes - around)}` });
  const most = await server.request('POST', '/api/v3/notebooks/import', { body: body(limit) });
  assert.equal(most.status, 201);
  const more = await server.request('POST', '/api/v3/notebooks/import', { body: body(limit + 1) });
  assert.deepEqual([more.status, (more.body as { code: string }).code], [413, 'body_too_large']);
});

test('an exported file is named after the title of its notebook, or after its id if the notebook has no title', async () => {
  const headersOf = async (id: string, format: string) => {
    const { headers } = await server.request('GET', `/api/v3/notebooks/${id}/export?format=${format}`);
    return [headers['content-type'], headers['content-disposition'], headers['cache-control']];
  };
  const titled = (ending: string) =>
    `attachment; filename="Uber_ a _test_.${ending}"; filename*=UTF-8''%C3%9Cber_%20a%20_test_.${ending}`;
  assert.deepEqual(await headersOf(saved.id, 'py'), [
    'text/x-python; charset=utf-8',
    titled('py'),
    'no-store',
  ]);
  assert.deepEqual(await headersOf(saved.id, 'ipynb'), [
    'application/x-ipynb+json',
    titled('ipynb'),
    'no-store',
  ]);
  assert.deepEqual(await headersOf(saved.id, 'md'), [
    'text/markdown; charset=utf-8',
    titled('md'),
    'no-store',
  ]);
  assert.deepEqual(await headersOf(saved.id, 'html'), [
    'text/html; charset=utf-8',
    titled('html'),
    'no-store',
  ]);
  const { id } = await notebooks.create();
  const disposition = `attachment; filename="${id}.py"; filename*=UTF-8''${id}.py`;
  assert.deepEqual(await headersOf(id, 'py'), ['text/x-python; charset=utf-8', disposition, 'no-store']);
});

test('exported files contain the saved outputs, during and after a session, but never outputs of other code', async () => {
  const notebook = await openNotebook(server, {
    a: 'print("PRINTED" + "-" + "LINE")\n"RE" + "SULT"',
    b: '1 / 0',
    c: '"of " + "earlier code"',
  });
  await notebook.run([]);
  for (const format of ['ipynb', 'html'] as const) {
    const text = await textOf(notebook.id, format);
    for (const output of ['RESULT', 'PRINTED-LINE', 'division by zero', 'of earlier code']) {
      assert.ok(text.includes(output), `${format} of an open notebook lacks ${output}`);
    }
  }
  await notebook.close();
  const { updatedAt, serialization } = await notebooks.get(notebook.id);
  const cells = serialization.cells.map((cell) => (cell.cell_id === 'c' ? { ...cell, code: '"new"' } : cell));
  await notebooks.update(notebook.id, { expectedUpdatedAt: updatedAt, serialization: { cells } });
  const { cells: written } = JSON.parse(await textOf(notebook.id, 'ipynb')) as {
    cells: { source: string[]; outputs: { output_type: string }[] }[];
  };
  assert.deepEqual(
    written.map(({ source, outputs }) => [source.join(''), outputs.map((output) => output.output_type)]),
    [
      ['print("PRINTED" + "-" + "LINE")\n"RE" + "SULT"', ['stream', 'display_data']],
      ['1 / 0', ['error']],
      ['"new"', []],
    ],
  );
  await notebooks.delete(notebook.id);
  assert.equal(await refusalOf(notebooks.export(notebook.id, 'ipynb')), '404 not_found');
});

test('a closed session shows the saved cells, and is deleted with the notebook', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1', b: 'x' }, { options: { b: { name: 'shown' } } });
  await notebook.run([]);
  const stale = [
    { cellId: 'a', name: '', status: 'stale', stale: true },
    { cellId: 'b', name: 'shown', status: 'stale', stale: true },
  ];
  assert.deepEqual(withoutVersions((await notebook.close()).cells), stale);
  assert.deepEqual(withoutVersions((await notebook.record()).cells), stale);
  await notebooks.delete(notebook.id);
  assert.equal(await refusalOf(notebook.record()), '404 not_found');
});

test('options that converters do not know are kept, and change no other part of the notebook', async () => {
  const { id } = await notebooks.create({
    serialization: {
      app: { options: { 'a b': 1, _filename: 'x', width: { deep: 1 }, app_title: 7, auto_download: 'x' } },
      cells: [
        {
          cell_id: '__proto__',
          code: 'a = 1',
          options: { name: 'two words', hide_code: 'yes', column: 'x' },
        },
        { cell_id: 'k', code: 'b = 1', options: { name: 'class', disabled: 1, other: {} } },
      ],
    },
  });
  for (const format of ['py', 'ipynb', 'md'] as const) {
    const back = await notebooks.import({ format, content: await textOf(id, format) });
    assert.deepEqual(plain(back.serialization.cells), [
      { code: 'a = 1', options: {} },
      { code: 'b = 1', options: {} },
    ]);
  }
  assert.match(await textOf(id, 'html'), /<title>/);
});

test('the title of a notebook survives every format', async () => {
  const options = { app_title: `"); import os; os._exit(1)  # ' \\ \n---\n: \u2028 😀` };
  const { id } = await notebooks.create({
    serialization: { app: { options }, cells: cellsOf({ a: 'x = 1' }) },
  });
  for (const format of ['py', 'ipynb', 'md'] as const) {
    const back = await notebooks.import({ format, content: await textOf(id, format) });
    assert.deepEqual(
      [back.serialization.app.options, plain(back.serialization.cells)],
      [options, [{ code: 'x = 1', options: {} }]],
    );
  }
});

test('an exported page never includes files of the server', async () => {
  const options = { css_file: '/etc/passwd', html_head_file: '/etc/passwd', layout_file: '/etc/passwd' };
  const { id } = await notebooks.create({
    serialization: { app: { options }, cells: cellsOf({ a: 'x = 1' }) },
  });
  assert.equal((await textOf(id, 'html')).includes('root:'), false);
});

test('an import only reports packages that cells request from pip, and with `install` turns complete requirements into dependencies', async () => {
  const source = '!pip install humanize>=4 -r requirements.txt\nx = 1';
  const cell = { cell_type: 'code', source, metadata: {}, outputs: [], execution_count: null };
  const content = JSON.stringify({ cells: [cell], metadata: {}, nbformat: 4, nbformat_minor: 5 });
  const plainly = await notebooks.import({ format: 'ipynb', content });
  assert.deepEqual(
    plainly.warnings?.map(({ code, message }) => [
      code,
      /humanize>=4|-r requirements\.txt/.exec(message)?.[0],
    ]),
    [
      ['packages_not_installed', 'humanize>=4'],
      ['pip_not_understood', '-r requirements.txt'],
    ],
  );
  const { warnings: _, ...saved } = plainly;
  assert.deepEqual(await notebooks.get(plainly.id), saved);
  assert.equal(plainly.serialization.app.options.header, undefined);
  const replaces = { notebookId: plainly.id, expectedUpdatedAt: plainly.updatedAt };
  const wished = await notebooks.import({ format: 'ipynb', content, install: true, replaces });
  assert.deepEqual(
    wished.warnings?.map(({ code }) => code),
    ['pip_not_understood'],
  );
  assert.match(String(wished.serialization.app.options.header), /dependencies = \["humanize>=4"\]/);
});
