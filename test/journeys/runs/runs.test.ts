import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import test from 'node:test';
import type { OutputPart, Run } from '#src/contract/wire/run.ts';
import { openNotebook, printed, results, statuses } from '#test/support/notebook-fixture.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { executions, runs } = server.client;

/** Runs one cell in a notebook of its own, which is closed afterwards. */
async function runOf(code: string, setUp = ''): Promise<Run> {
  const notebook = await openNotebook(server, { before: setUp, cell: code });
  if (setUp !== '') await notebook.run(['before']);
  const run = await notebook.run(['cell']);
  await notebook.close();
  return run;
}

/** The output of the cell in a run. */
async function outputsOf(code: string, setUp?: string) {
  const run = await runOf(code, setUp);
  assert.equal(run.status, 'completed', JSON.stringify(run.error));
  return results(run)[0]!.outputs.map(({ text: _, table: __, ...output }) => output);
}

function partsOf<T extends OutputPart['type']>(run: Run, type: T): Extract<OutputPart, { type: T }>[] {
  return (run.output?.parts ?? []).filter(
    (part): part is Extract<OutputPart, { type: T }> => part.type === type,
  );
}

test('a run is first running without output, then ended with all its output, and never changes again', async () => {
  const notebook = await openNotebook(server, {
    a: "import os, time\nwhile not os.path.exists('proceed'): time.sleep(0.005)",
    b: 'print("hello"); "shown"',
    go: '1',
  });
  const runId = await notebook.submit(['a', 'b']);
  const { createdAt, startedAt, ...running } = await runs.get(runId);
  const input = { type: 'cells', cells: [{ cellId: 'a' }, { cellId: 'b' }] };
  const common = { id: runId, kind: 'notebook', sessionId: notebook.id, input, createdBy: 'owner' };
  assert.deepEqual(running, { ...common, status: 'running', output: null, error: null, finishedAt: null });
  writeFileSync(`${server.filesDir}/proceed`, '');
  const run = await server.client.waitForRun(runId);
  const { finishedAt, output, ...done } = run;
  assert.deepEqual(done, { ...common, status: 'completed', createdAt, startedAt, error: null });
  assert.ok(createdAt <= startedAt! && startedAt! <= finishedAt!);
  const durations = results(run).map(({ durationMs }) => durationMs!);
  assert.ok(durations.every((ms) => ms > 0));
  assert.deepEqual(output, {
    stored: true,
    parts: [
      {
        type: 'cell-result',
        cellId: 'a',
        status: 'success',
        outputs: [],
        console: [],
        durationMs: durations[0],
      },
      {
        type: 'cell-result',
        cellId: 'b',
        status: 'success',
        outputs: [
          { mimetype: 'text/html', data: "<pre class='text-xs'>&#x27;shown&#x27;</pre>", text: "'shown'" },
        ],
        console: [{ channel: 'stdout', mimetype: 'text/plain', data: 'hello\n' }],
        durationMs: durations[1],
      },
    ],
  });
  await notebook.run(['b']);
  await notebook.close();
  assert.deepEqual(await runs.get(runId), run);
});

test('the runs of a session are listed oldest first in pages, each run once', async () => {
  const notebook = await openNotebook(server, { a: '1' });
  const expected: Run[] = [];
  for (let i = 0; i < 53; i++) expected.push(await notebook.run(['a']));
  assert.deepEqual(
    expected.map(({ id }) => id),
    expected.map(({ id }) => id).sort(),
  );
  const first = await executions.list(notebook.id);
  assert.deepEqual(first, { items: expected.slice(0, 50), nextCursor: expected[49]!.id });
  const second = await executions.list(notebook.id, { after: first.nextCursor! });
  assert.deepEqual(second, { items: expected.slice(50), nextCursor: null });
  assert.deepEqual(await executions.list(notebook.id, { limit: 100 }), { items: expected, nextCursor: null });
  const exact = await executions.list(notebook.id, { limit: 3, after: expected[49]!.id });
  assert.deepEqual(exact, { items: expected.slice(50), nextCursor: null });
  const behindLast = await executions.list(notebook.id, { after: expected.at(-1)!.id });
  assert.deepEqual(behindLast, { items: [], nextCursor: null });
  const walked: Run[] = [];
  for await (const run of executions.each(notebook.id, { limit: 7 })) walked.push(run);
  assert.deepEqual(walked, expected);
  await notebook.close();
});

test('a cursor that is not the id of a run, and a bad limit or parameter, are refused', async () => {
  const [one, other] = [await openNotebook(server, { a: '1' }), await openNotebook(server, { a: '1' })];
  const { id } = await other.run(['a']);
  for (const after of [one.id, `${id}0`, 'run_1', 'x', '%']) {
    assert.equal(await refusalOf(executions.list(one.id, { after })), '400 invalid_cursor', after);
  }
  assert.deepEqual(await executions.list(one.id, { after: id }), { items: [], nextCursor: null });
  for (const query of [
    'limit=0',
    'limit=101',
    'limit=-1',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'after=',
    'page=2',
  ]) {
    const answer = await server.request('GET', `/api/v3/notebook-sessions/${one.id}/executions?${query}`);
    assert.deepEqual(
      [answer.status, (answer.body as { code: string }).code],
      [400, 'invalid_request'],
      query,
    );
  }
  await Promise.all([one.close(), other.close()]);
});

test('an unknown run cannot be read or cancelled', async () => {
  for (const id of ['run_00000000000000000000000000', 'nb_1', 'x'.repeat(250)]) {
    assert.equal(await refusalOf(runs.get(id)), '404 not_found');
    assert.equal(await refusalOf(runs.cancel(id)), '404 not_found');
  }
});

test('values are shown as in marimo, each with its media type', async () => {
  assert.deepEqual(await outputsOf('None'), []);
  assert.deepEqual(await outputsOf('41 + 1'), [
    { mimetype: 'text/html', data: "<pre class='text-xs'>42</pre>" },
  ]);
  assert.deepEqual(await outputsOf('[1, {"a": None}]'), [
    { mimetype: 'application/json', data: '[1, {"a": null}]' },
  ]);
  assert.deepEqual(await outputsOf('mo.Html("<b>x</b>")', 'import marimo as mo'), [
    { mimetype: 'text/html', data: '<b>x</b>' },
  ]);
  const [markdown] = await outputsOf('mo.md("# Hi *there*")', 'import marimo as mo');
  assert.equal(markdown?.mimetype, 'text/markdown');
  assert.ok(
    'data' in markdown! && String(markdown.data).includes('<h1 id="hi-there">Hi <em>there</em></h1>'),
  );
});

test('a plot is a PNG image in the record', async () => {
  const outputs = await outputsOf(
    'plt.figure(figsize=(1, 1), dpi=20); plt.plot([1, 2]); plt.gca()',
    'import matplotlib.pyplot as plt',
  );
  assert.deepEqual(
    outputs.map(({ mimetype }) => mimetype),
    ['image/png'],
  );
  const [image] = outputs;
  assert.ok(image !== undefined && 'data' in image);
  const [prefix, base64] = String(image.data).split(',');
  assert.equal(prefix, 'data:image/png;base64');
  assert.equal(Buffer.from(base64!, 'base64').subarray(1, 4).toString(), 'PNG');
});

test('the printed text of a cell is stored by channel, in order', async () => {
  const run = await runOf(
    'print("one")\nprint("two", file=sys.stderr)\nprint("three")\nprint("four")',
    'import sys',
  );
  assert.deepEqual(results(run)[0]!.console, [
    { channel: 'stdout', mimetype: 'text/plain', data: 'one\n' },
    { channel: 'stderr', mimetype: 'text/plain', data: 'two\n' },
    { channel: 'stdout', mimetype: 'text/plain', data: 'three\nfour\n' },
  ]);
});

test('an exception fails the run: its text is the error, and its traceback is in the console', async () => {
  const run = await runOf('def f():\n    raise ValueError("a\\nb ünï")\nf()');
  assert.deepEqual(
    [run.status, run.error],
    ['failed', { code: 'cell_failed', message: 'ValueError: a\nb ünï', cells: ['cell'] }],
  );
  const [result] = results(run);
  assert.deepEqual(
    [result?.status, result?.outputs],
    [
      'error',
      [
        {
          mimetype: 'application/vnd.marimo+error',
          data: [
            {
              type: 'exception',
              msg: 'a\nb ünï',
              exception_type: 'ValueError',
              raising_cell: null,
              traceback: null,
            },
          ],
          text: 'ValueError: a\nb ünï',
        },
      ],
    ],
  );
  assert.deepEqual(
    result?.console.map(({ channel, mimetype }) => [channel, mimetype]),
    [['stderr', 'application/vnd.marimo+traceback']],
  );
  assert.match(printed(result!), /Traceback \(most recent call last\)/);
});

test('sys.exit fails the cell, and the kernel lives', async () => {
  const notebook = await openNotebook(server, { a: 'import sys', b: 'sys.exit(3)', c: 'x = 1' });
  const run = await notebook.run(['b']);
  assert.deepEqual([run.status, run.error?.message], ['failed', 'SystemExit: 3']);
  assert.deepEqual(statuses(await notebook.run(['b', 'c'])), { b: 'error', c: 'success' });
  await notebook.close();
});

test('a cell that stops itself with mo.stop completes the run, and its dependents do not run', async () => {
  const notebook = await openNotebook(server, {
    a: 'import marimo as mo',
    b: 'mo.stop(True, "enough")\nx = 1',
    c: 'print(x)',
  });
  const run = await notebook.run(['c']);
  assert.deepEqual([run.status, run.error], ['completed', null]);
  assert.deepEqual(
    results(run).map(({ cellId, status, console }) => [cellId, status, console]),
    [
      ['a', 'success', []],
      ['b', 'stopped', []],
      ['c', 'cancelled', []],
    ],
  );
  await notebook.close();
});

test('a warning names a package that is not installed', async () => {
  const run = await runOf('import not_installed_anywhere');
  assert.deepEqual(partsOf(run, 'warning'), [
    { type: 'warning', code: 'missing_packages', message: 'Not installed: not-installed-anywhere.' },
  ]);
});

test('an output above 64 KiB becomes an asset of the run, and a smaller output is stored in the record', async () => {
  const [small] = await outputsOf(`mo.Html("x" * ${64 * 1024})`, 'import marimo as mo');
  assert.deepEqual(small, { mimetype: 'text/html', data: 'x'.repeat(64 * 1024) });
  const run = await runOf(`mo.Html("ü" * ${40 * 1024})`, 'import marimo as mo');
  const [asset] = partsOf(run, 'asset');
  const { assetId } = asset!;
  assert.match(assetId, /^asset_[0-9a-z]{26}$/);
  const [placed] = results(run)[0]!.outputs;
  assert.ok(placed !== undefined && 'assetId' in placed && placed.assetId === assetId);
  assert.match(placed.text ?? '', /^ü{16000}\n… \d+ more characters$/);
  const bytes = Buffer.from('ü'.repeat(40 * 1024));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  assert.deepEqual(partsOf(run, 'asset'), [
    { type: 'asset', assetId, mimetype: 'text/html', bytes: bytes.byteLength, sha256 },
  ]);
  assert.deepEqual(await runs.get(run.id), run);
});

test('the record keeps the beginning and end of ten megabytes of text, and a warning gives the size of the rest', async () => {
  const run = await runOf('for i in range(100_000): print(f"{i:099d}")');
  const text = printed(results(run)[0]!);
  assert.equal(text.length, 64 * 1024);
  assert.equal(text.slice(0, 200), `${'0'.repeat(99)}\n${'0'.repeat(98)}1\n`);
  assert.ok(text.endsWith(`${'99999'.padStart(99, '0')}\n`));
  assert.deepEqual(partsOf(run, 'warning'), [
    {
      type: 'warning',
      code: 'console_truncated',
      cellId: 'cell',
      message: `The cell cell printed ${10_000_000 - 64 * 1024} more characters between the beginning and the end kept here.`,
    },
  ]);
});
