import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type TestContext } from 'node:test';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import type { ConvertRequest, ConvertResult } from '#src/confined/processes/children/convert.ts';
import { RESULTS_LIMIT_BYTES } from '#src/notebook/saved/file-results.ts';
import { NotebookFiles } from '#src/notebook/saved/notebook-files.ts';
import { SavedNotebooks } from '#src/notebook/saved/saved-notebooks.ts';
import { openStore } from '#storage/open-store.ts';
import { cellOutputRecords } from '#storage/records/notebooks.ts';
import { eventually } from '#test/support/processes.ts';
import { addWorkspaces } from '#test/support/store/temporary-store.ts';

const HOME = 'ws_home' as WorkspaceId;
const NEIGHBOUR = 'ws_neighbour' as WorkspaceId;

/** Saved notebooks in a real store, and files by a converter with prepared answers. */
async function open(
  t: TestContext,
  answer: (request: ConvertRequest) => ConvertResult | Promise<ConvertResult>,
) {
  const path = mkdtempSync(join(tmpdir(), 'troupe-files-'));
  const store = await openStore(join(path, 'store'), (error) => {
    throw error;
  });
  t.after(async () => {
    await store[Symbol.asyncDispose]();
    rmSync(path, { recursive: true });
  });
  addWorkspaces(store, HOME);
  const notebooks = new SavedNotebooks(
    store,
    () => undefined,
    () => true,
  );
  const requests: ConvertRequest[] = [];
  const converter = {
    up: true,
    isUp: () => converter.up,
    async convert(request: ConvertRequest) {
      requests.push(request);
      return answer(request);
    },
  };
  const files = new NotebookFiles(store, notebooks, () => undefined, converter);
  const keep = (notebookId: string, cellId: string, code: string, data: string, workspaceId = HOME) =>
    store.write((tx) => {
      const output = { channel: 'output', mimetype: 'text/plain', data, timestamp: 1 };
      tx.put(cellOutputRecords, { output, console: [], code, held: [] }, workspaceId, notebookId, cellId);
    });
  return { store, notebooks, files, converter, requests, keep };
}

const failing = (code: string, message: string) => (): ConvertResult => ({
  ok: false,
  error: { code, message },
});
const written = (): ConvertResult => ({ ok: true, serialization: null, content: 'text' });
const cellsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ cell_id: `c${i}`, code: `x${i} = ${i}`, options: {} }));

async function refusal(call: Promise<unknown>) {
  const error = await call.then(
    () => assert.fail('was not refused'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof AppError)) throw error;
  return {
    code: error.code,
    detail: error.message,
    errors: error.extras.errors,
    headers: error.extras.headers,
  };
}

test('an unreadable file is refused with the place of the mistake', async (t) => {
  const { files } = await open(t, failing('unreadable_notebook', 'line 2, column 5:\n  invalid syntax'));
  assert.deepEqual(await refusal(files.import(HOME, { format: 'py', content: '' })), {
    code: 'unreadable_notebook',
    detail: 'Not readable as .py: line 2, column 5: invalid syntax.',
    errors: [{ path: '/content', message: 'line 2, column 5: invalid syntax.' }],
    headers: undefined,
  });
});

test('when a converter dies, the error names the file as the cause', async (t) => {
  const { files } = await open(t, failing('conversion_failed', 'The converter ended without an answer.'));
  const { code, detail } = await refusal(files.import(HOME, { format: 'ipynb', content: '' }));
  assert.deepEqual(
    [code, detail],
    ['unreadable_notebook', 'Not readable as .ipynb: The converter ended without an answer.'],
  );
});

const GONE = {
  code: 'unavailable',
  detail: 'The process that reads and writes notebook files is starting.',
  errors: undefined,
  headers: { 'retry-after': '2' },
};

test('two conversions of a workspace run and sixteen wait, and meanwhile conversions of another workspace complete', async (t) => {
  const ends: (() => void)[] = [];
  const { files } = await open(t, () => new Promise((resolve) => ends.push(() => resolve(broken()))));
  const broken = failing('unreadable_notebook', 'broken');
  const begin = (workspaceId: WorkspaceId) =>
    refusal(files.import(workspaceId, { format: 'py', content: '' })).then(({ code }) => code);
  const own = Array.from({ length: 2 + 16 }, () => begin(HOME));
  assert.equal(await begin(HOME), 'unavailable');
  assert.equal(ends.length, 2);
  const neighbours = [begin(NEIGHBOUR), begin(NEIGHBOUR), begin(NEIGHBOUR)];
  await eventually('two of the neighbour have begun', () => ends.length === 4 || undefined);
  ends.splice(2).forEach((end) => void end());
  assert.deepEqual(await Promise.all(neighbours.slice(0, 2)), ['unreadable_notebook', 'unreadable_notebook']);
  const rest = Promise.all([...own, neighbours[2]]);
  let isDone = false;
  void rest.then(() => {
    isDone = true;
  });
  await eventually('the others end', () => {
    ends.splice(0).forEach((end) => void end());
    return isDone || undefined;
  });
  assert.ok((await rest).every((code) => code === 'unreadable_notebook'));
});

test('without a kernel host no conversion begins, and the caller may retry', async (t) => {
  const { files, notebooks, converter, requests } = await open(t, written);
  converter.up = false;
  const { document } = await notebooks.create(HOME, {});
  assert.deepEqual(await refusal(files.import(HOME, { format: 'py', content: '' })), GONE);
  assert.deepEqual(
    await refusal(files.export(HOME, document.id, { format: 'py', assetUrl: undefined })),
    GONE,
  );
  assert.deepEqual(requests, []);
});

test('when the kernel host ends during a conversion, the error does not name the file as the cause', async (t) => {
  const lost = await open(t, failing('kernel_host_failed', 'The kernel host ended during the conversion.'));
  assert.deepEqual(await refusal(lost.files.import(HOME, { format: 'py', content: '' })), GONE);
  const cut = await open(t, () => {
    cut.converter.up = false;
    return {
      ok: false,
      error: { code: 'conversion_failed', message: 'The converter ended without an answer.' },
    };
  });
  assert.deepEqual(await refusal(cut.files.import(HOME, { format: 'py', content: '' })), GONE);
});

test('a notebook that is read from a file is saved like a new notebook, up to ten thousand cells', async (t) => {
  let count = 10_000;
  const { files, notebooks } = await open(t, () => ({
    ok: true,
    serialization: { version: '1', app: { options: {} }, cells: cellsOf(count) },
    pip: null,
    content: null,
  }));
  const { id, json } = await files.import(HOME, { format: 'py', content: '' });
  assert.equal(notebooks.read(HOME, id).serialization.cells.length, 10_000);
  assert.deepEqual(Buffer.from(notebooks.json(HOME, id)), Buffer.from(json));
  count++;
  const { code, detail } = await refusal(files.import(HOME, { format: 'py', content: '' }));
  assert.deepEqual(
    [code, detail],
    ['unreadable_notebook', 'Not readable as .py: it has more than 10000 cells.'],
  );
});

test('writing a notebook that a format cannot express is a conflict', async (t) => {
  const { files, notebooks } = await open(
    t,
    failing('unwritable_notebook', 'the Python environment lacks nbformat'),
  );
  const { document } = await notebooks.create(HOME, {});
  const { code, detail } = await refusal(
    files.export(HOME, document.id, { format: 'ipynb', assetUrl: undefined }),
  );
  assert.deepEqual([code, detail], ['unwritable_notebook', 'the Python environment lacks nbformat.']);
});

test('an exported file is named for its title, and has the outputs of its present code', async (t) => {
  const { files, notebooks, requests, keep } = await open(t, written);
  const cells = cellsOf(3);
  const { document } = await notebooks.create(HOME, {
    serialization: { app: { options: { app_title: 'A/B' } }, cells },
  });
  keep(document.id, 'c0', 'x0 = 0', 'zero');
  keep(document.id, 'c1', 'x1 = "of other code"', 'one');
  keep(document.id, 'gone', 'y', 'of a cell that is gone');
  const file = await files.export(HOME, document.id, { format: 'html', assetUrl: 'http://h/m' });
  assert.deepEqual(file, { name: 'A_B.html', content: Buffer.from('text') });
  const output = { channel: 'output', mimetype: 'text/plain', data: 'zero', timestamp: 1 };
  assert.deepEqual(requests, [
    {
      direction: 'write',
      format: 'html',
      serialization: { ...document.serialization },
      title: 'A_B',
      results: { c0: { output, console: [] } },
      assetUrl: 'http://h/m',
    },
  ]);
  await files.export(HOME, document.id, { format: 'py', assetUrl: undefined });
  assert.deepEqual(requests[1], {
    direction: 'write',
    format: 'py',
    serialization: { ...document.serialization },
    title: 'A_B',
  });
});

test('a note replaces outputs that do not fit into one file', async (t) => {
  const { files, notebooks, requests, keep } = await open(t, written);
  const { document } = await notebooks.create(HOME, { serialization: { cells: cellsOf(3) } });
  keep(document.id, 'c0', 'x0 = 0', 'a'.repeat(RESULTS_LIMIT_BYTES - 10));
  keep(document.id, 'c1', 'x1 = 1', 'b'.repeat(2048));
  keep(document.id, 'c2', 'x2 = 2', 'c'.repeat(10));
  await files.export(HOME, document.id, { format: 'ipynb', assetUrl: undefined });
  const [request] = requests;
  assert.ok(request?.direction === 'write');
  const shown = Object.entries(request.results ?? {}).map(([id, { output }]) => [
    id,
    String(output?.data).slice(0, 42),
  ]);
  assert.deepEqual(shown, [
    ['c0', 'a'.repeat(42)],
    ['c1', '[2 KiB of output are left out: the noteboo'],
    ['c2', 'c'.repeat(10)],
  ]);
});

test('an export reads its notebook only when its workspace has a place, and other workspaces do not wait', async (t) => {
  const ends: (() => void)[] = [];
  const { files, notebooks, store } = await open(
    t,
    () => new Promise((resolve) => ends.push(() => resolve(written()))),
  );
  addWorkspaces(store, NEIGHBOUR);
  const [own, other] = await Promise.all(
    [HOME, NEIGHBOUR].map((workspaceId) => notebooks.create(workspaceId, { serialization: { cells: [] } })),
  );
  const read: string[] = [];
  t.mock.method(notebooks, 'readInSlices', (workspaceId: WorkspaceId, notebookId: string) => {
    read.push(workspaceId);
    return Promise.resolve(notebooks.read(workspaceId, notebookId));
  });
  const begin = (workspaceId: WorkspaceId, id: string) =>
    files.export(workspaceId, id, { format: 'py', assetUrl: undefined });
  const exports = Array.from({ length: 3 }, () => begin(HOME, own!.document.id));
  exports.push(begin(NEIGHBOUR, other!.document.id));
  await eventually('three are converted', () => ends.length === 3);
  assert.deepEqual(read, [HOME, HOME, NEIGHBOUR]);
  ends.shift()!();
  await eventually('the next one is converted', () => ends.length === 3);
  assert.equal(read.length, 4);
  for (const end of ends) end();
  assert.equal((await Promise.all(exports)).length, 4);
});
