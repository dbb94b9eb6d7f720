import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Run } from '#src/contract/wire/run.ts';
import { cellsOf, openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { IMAGE_CODE, marimoFile, PNG_BASE64 } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const { troupe, json, text } = shell;

interface Finished {
  readonly notebookId: string;
  readonly run: Run;
  readonly files: readonly { readonly cellId: string; readonly mimetype: string; readonly path: string }[];
}

function file(name: string, cells: Readonly<Record<string, string>>): string {
  writeFileSync(join(shell.cwd, name), marimoFile(cells));
  return name;
}

/** Replaces durations and ids, which differ in each run. */
function steady(shown: string): string {
  return shown.replace(/\b\d+(\.\d+)? m?s\b/g, '<time>').replace(/\b(run|nb)_\w{20,}/g, '<$1>');
}

/** Python code that prints in a loop until it is interrupted, and reports the interrupt. */
const ENDLESS = `import time
for n in range(1000):
    print("tick", n, flush=True)
    time.sleep(0.05)`;

test('one command runs a plain marimo file, and nothing stays open afterwards', async () => {
  const name = file('plain.py', {
    load: 'words = ["a", "b"]',
    show: 'print("hello")\nlen(words)',
    _: 'words',
  });
  const { exitCode, out, err } = await troupe(['run', name]);
  assert.equal(exitCode, 0, err);
  assert.deepEqual(steady(out).split('\n'), [
    '✓ 1/3 load  words = ["a", "b"]  <time>',
    '▸ 2/3 show  print("hello")',
    'hello',
    '2',
    '✓ <time>',
    '',
    out.split('\n')[6]?.startsWith('✓ 3/3 ') ? steady(out).split('\n')[6] : 'the third cell',
    "['a', 'b']",
    '',
    'completed in <time>: 3 done  <run>',
    '',
  ]);
  assert.equal(steady(err), 'imported plain.py as <nb>\nkernel ready in <time>\n');
  const [notebookId = ''] = /nb_\w+/.exec(err) ?? [];
  const session = await client.notebookSessions.get(notebookId);
  assert.equal(session.status, 'closed');
  assert.equal((await client.executionEnvironments.get(session.environmentId ?? '')).status, 'closed');
});

test('a run names its server if the last sign-in was at another server', async () => {
  const name = file('elsewhere.py', { a: '1' });
  const settings = join(shell.cwd, 'own-settings');
  const login = { accessToken: 'trp_other', workspaceId: 'w' };
  mkdirSync(join(settings, 'troupe'), { recursive: true });
  const sign = (url: string) =>
    writeFileSync(join(settings, 'troupe', 'credentials.json'), JSON.stringify({ [url]: login }));
  sign('https://troupe.example');
  const run = () => troupe(['run', '--rm', name], { env: { XDG_CONFIG_HOME: settings } });
  const [first = ''] = (await run()).err.split('\n');
  assert.equal(first, `on ${server.baseUrl}, not on https://troupe.example of the last sign-in`);
  sign(server.baseUrl);
  assert.doesNotMatch((await run()).err, /last sign-in/);
});

test('with --json a run is printed as one document', async () => {
  const { notebookId, run, files } = await json<Finished>([
    'run',
    '--rm',
    file('short.py', { a: 'print(1)\n2' }),
  ]);
  assert.deepEqual([run.status, run.sessionId, files], ['completed', notebookId, []]);
  const refusal = await client.notebooks.get(notebookId).catch((error) => error.code);
  assert.equal(refusal, 'not_found', '--rm deletes what was imported');
});

test('a failed run prints the cell and the traceback, and exits with 1', async () => {
  const name = file('broken.py', {
    good: 'import sys\nx = 1',
    bad: 'print("before", file=sys.stderr)\nx / 0',
  });
  const { exitCode, out, err } = await troupe(['run', name]);
  assert.equal(exitCode, 1);
  assert.deepEqual(steady(out).split('\n').slice(1), [
    '▸ 2/2 bad  print("before", file=sys.stderr)',
    '✗ <time>',
    '',
    'failed in <time>: 1 done, 1 failed  <run>',
    'cell_failed ZeroDivisionError: division by zero (in bad)',
    '',
  ]);
  assert.match(
    err,
    /\nbefore\nTraceback \(most recent call last\):\n[\s\S]*\nZeroDivisionError: division by zero\n/,
  );
  assert.ok(!err.includes('<span') && !(out + err).includes('\u001b'));
});

test('a cell that does not parse is printed with the place of the mistake', async () => {
  writeFileSync(
    join(shell.cwd, 'syntax.md'),
    '---\nmarimo-version: 0.25.2\n---\n\n```python {.marimo}\nx = (\n```\n',
  );
  const { exitCode, out } = await troupe(['run', '--rm', 'syntax.md']);
  assert.equal(exitCode, 1);
  assert.match(out, /SyntaxError: '\(' was never closed\n/);
});

test('--cells runs only the named cells, by name or id, with their dependencies', async () => {
  const cells = cellsOf({ a: 'x = 1', b: 'x + 1', c: '1 / 0' }, { b: { name: 'second' } });
  const { id } = await client.notebooks.create({ serialization: { cells } });
  const { out, exitCode } = await troupe([
    'run',
    '--notebook',
    id,
    '--cells',
    'second',
    '--cache-mode',
    'no-store',
  ]);
  assert.equal(exitCode, 0);
  assert.deepEqual(steady(out).split('\n'), [
    '✓ 1/2 a  x = 1  <time>',
    '✓ 2/2 second  x + 1  <time>',
    '2',
    '',
    'completed in <time>  <run>',
    '',
  ]);
  const unknown = await troupe(['run', id, '--cells', 'a,nope']);
  assert.deepEqual([unknown.exitCode, unknown.out], [2, '']);
  assert.equal(unknown.err, 'troupe: The notebook has no cell nope. Its cells are: a, second, c\n');
});

test('images are saved, and their paths are printed', async () => {
  const name = file('picture.py', { picture: IMAGE_CODE });
  const { exitCode, out, err } = await troupe(['run', name]);
  assert.equal(exitCode, 0, err);
  const [, path = ''] = /^image saved: (\.\/troupe-output\/run_\w+\/picture-1\.png)$/m.exec(out) ?? [];
  assert.deepEqual(readFileSync(join(shell.cwd, path)).toString('base64'), PNG_BASE64);
  const { files, run } = await json<Finished>(['run', '--output-dir', 'pictures', name]);
  const saved = join(shell.cwd, 'pictures', 'picture-1.png');
  assert.deepEqual(
    files.map(({ mimetype, path: at }) => [mimetype, at, existsSync(at)]),
    [['image/png', saved, true]],
  );
  assert.match(await text(['runs', 'show', run.id]), /\[image, 70 bytes; --output-dir saves it\]/);
  assert.match(await text(['runs', 'show', run.id, '--output-dir', 'again']), /image saved: \.\/again\//);
});

test('a large output is fetched from its asset', async () => {
  const { run } = await json<Finished>(['run', file('large.py', { large: '"word " * 20_000' })]);
  const [part] = run.output?.parts ?? [];
  assert.ok(part?.type === 'cell-result' && part.outputs.every((output) => 'assetId' in output));
  assert.ok((await text(['runs', 'show', run.id])).includes('word '.repeat(1000)));
});

test('a large picture that an event only mentions is saved while the run continues', async () => {
  const code = `class Picture:
    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * 100_000
Picture()`;
  const { exitCode, out, err } = await troupe(['run', file('large-picture.py', { large: code })]);
  assert.equal(exitCode, 0, err);
  const [, path = ''] = /^image saved: (\S+)$/m.exec(out) ?? [];
  assert.equal(readFileSync(join(shell.cwd, path)).byteLength, 100_008);
});

test('Ctrl-C cancels the run, and everything is closed again', async () => {
  const child = shell.start(['run', file('endless.py', { endless: ENDLESS, after: '1' })]);
  await child.until('tick 3');
  child.interrupt();
  const { exitCode, out, err } = await child.ended;
  assert.equal(exitCode, 130);
  assert.match(err, /\ncancelling run_\w+; press Ctrl-C again to leave at once\n/);
  assert.match(
    steady(out),
    /\n✗ interrupted, <time>\n[\s\S]*cancelled in <time>: 1 interrupted, 1 did not run {2}<run>\n/,
  );
  const [notebookId = ''] = /nb_\w+/.exec(err) ?? [];
  assert.equal((await client.notebookSessions.get(notebookId)).status, 'closed');
});

test('a second Ctrl-C ends the command at once, and the output names the session, which ends by itself', async () => {
  const stubborn = `import time\nwhile True:\n    try:\n        print("tick", flush=True)\n        time.sleep(0.05)\n    except BaseException:\n        print("no", flush=True)`;
  const child = shell.start(['run', file('stubborn.py', { stubborn })]);
  await child.until('tick');
  child.interrupt();
  await child.until('no');
  child.interrupt();
  const { exitCode, err } = await child.ended;
  assert.equal(exitCode, 130);
  const [, notebookId = ''] =
    /the session ends by itself after its run: SERVICE_SESSION_ID=(nb_\w+)\n$/.exec(err) ?? [];
  const { status, idleTimeoutS } = await client.notebookSessions.get(notebookId);
  assert.notEqual(status, 'closed');
  assert.equal(idleTimeoutS, 20);
  await client.notebookSessions.close(notebookId);
});

test('a run uses an open session and leaves it open; --keep leaves a new session open', async () => {
  const notebook = await openNotebook(server, { a: 'x = 1' });
  const used = await troupe(['run', '--notebook', notebook.id]);
  assert.deepEqual([used.exitCode, used.err], [0, 'using the open session\n']);
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
  const kept = await troupe(['run', '--keep', notebook.id]);
  assert.ok(kept.err.endsWith(`the session stays open: SERVICE_SESSION_ID=${notebook.id}\n`));
  assert.equal((await notebook.record()).status, 'ready');
  await notebook.close();
});

test('runs can be listed, shown, tailed and cancelled', async () => {
  const notebook = await openNotebook(server, { a: ENDLESS, b: 'print("done")' });
  const env = { SERVICE_SESSION_ID: notebook.id };
  const finished = await notebook.submit(['b']);
  await client.waitForRun(finished);
  const running = await notebook.submit(['a']);
  const [people, lines] = [
    shell.start(['runs', 'tail', running]),
    shell.start(['runs', 'tail', running, '--json']),
  ];
  await Promise.all([people.until('tick'), lines.until('tick')]);
  assert.equal(await text(['runs', 'cancel', running]), `${running} is cancelled.`);
  const shown = await people.ended;
  assert.equal(shown.exitCode, 130);
  assert.match(steady(shown.out), /\ncancelled in <time>: 1 interrupted {2}<run>\n$/);
  const tailed = await lines.ended;
  const events: NotebookStreamEvent[] = tailed.out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.ok(events.every(({ runId }) => runId === running));
  assert.deepEqual(
    [tailed.exitCode, events.at(-1)],
    [130, { type: 'run', sessionId: notebook.id, runId: running, data: await client.runs.get(running) }],
  );
  assert.deepEqual(
    (await json<Run[]>(['runs', 'list'], { env })).map(({ id, status }) => [id, status]),
    [
      [finished, 'completed'],
      [running, 'cancelled'],
    ],
  );
  assert.match(
    await text(['runs', 'list', notebook.id]),
    new RegExp(`^ID .*\n${finished} +completed .*\n${running} +cancelled `),
  );
  assert.deepEqual(await json(['runs', 'show', finished]), await client.runs.get(finished));
  assert.match(
    steady(await text(['runs', 'show', finished])),
    /^▸ b {2}print\("done"\)\ndone\n✓ <time>\n\ncompleted in <time>: 1 done {2}<run>$/,
  );
  const again = await troupe(['runs', 'cancel', running]);
  assert.deepEqual([again.exitCode, again.out], [1, '']);
  assert.match(again.err, /\(run_finished at /);
  await notebook.close();
});

test('a detached run that has ended is shown with the names of its cells, and its notebook is exported by the name of its file', async () => {
  const cells = { imports: 'import sys', train: 'print("epoch 1")\n42' };
  writeFileSync(join(shell.cwd, 'training.py'), marimoFile(cells));
  const runId = await text(['run', 'training.py', '--detach']);
  await client.waitForRun(runId);
  for (const command of ['show', 'tail'])
    assert.match(await text(['runs', command, runId]), /▸ train {2}print\("epoch 1"\)\nepoch 1\n42\n✓/);
  await text(['notebooks', 'export', 'training.py', '-o', 'training.ipynb']);
  const exported = JSON.parse(readFileSync(join(shell.cwd, 'training.ipynb'), 'utf8'));
  assert.match(JSON.stringify(exported.cells[1].outputs), /42/);
  assert.match(await text(['notebooks', 'show', 'training.py']), /epoch 1/);
});

test('Ctrl-C while tailing a run leaves the run running', async () => {
  const notebook = await openNotebook(server, { a: ENDLESS });
  const runId = await notebook.submit(['a']);
  const child = shell.start(['runs', 'tail', runId]);
  await child.until('tick');
  child.interrupt();
  assert.equal((await child.ended).exitCode, 130);
  assert.equal((await client.runs.get(runId)).status, 'running');
  await notebook.close();
});

test('a missing or unknown notebook file is a usage error', async () => {
  for (const [args, message] of [
    [['run'], 'Name a notebook file, or use --notebook <id>.'],
    [['run', 'a.py', '--notebook', 'nb_1'], 'Give a file or --notebook, not both.'],
    [['run', 'a.txt'], 'a.txt is not a notebook file: the name must end in .py, .ipynb or .md.'],
    [['run', 'a.py'], 'There is no file a.py.'],
  ] as const) {
    assert.deepEqual(await troupe(args), { exitCode: 2, out: '', err: `troupe: ${message}\n` });
  }
});

test('cells that cannot run are shown with the reason, the other cells run, and --strict refuses the whole run', async () => {
  const name = file('double.py', { one: 'x = 1', two: 'x = 2', fine: 'print("ran")' });
  const { exitCode, out } = await troupe(['run', name]);
  assert.equal(exitCode, 1);
  for (const line of [
    /^ran$/m,
    /^✗ .*one {2}x = 1$/m,
    /^x is also defined in two$/m,
    /The cell one cannot run: x is also defined in two\./,
    /1 done, 2 failed/,
  ]) {
    assert.match(out, line);
  }
  const strict = await troupe(['run', '--strict', name]);
  assert.deepEqual([strict.exitCode, strict.out.includes('ran')], [1, false]);
  assert.match(strict.err, /one \(x is also defined in two\), two \(x is also defined in one\)/);
});

test('a cell that runs again because its state has changed is shown without a number', async () => {
  const name = file('state.py', {
    make: 'import marimo as mo\nget, set_ = mo.state(0)',
    read: 'print("state", get())',
    write: 'set_(7)',
  });
  const { out } = await troupe(['run', name]);
  assert.match(out, /^state 0$[\s\S]*^state 7$/m);
  assert.doesNotMatch(out, /4\/3/);
});

test("marimo's own elements are shown as text, and the files in them are saved", async () => {
  const name = file('elements.py', {
    mo: 'import marimo as mo',
    stat: 'mo.stat(5, label="Orders", caption="today")',
    tabs: 'mo.ui.tabs({"One": mo.md("first *page*"), "Two": "second page"})',
    accordion: 'mo.accordion({"Why": mo.md("because")})',
    mermaid: 'mo.mermaid("graph TD\\nA-->B")',
    load: 'mo.download(b"a,b", filename="data.csv", mimetype="text/csv", label="the data")',
    sound: 'mo.audio(b"RIFF0000WAVEfmt ")',
    plot: 'import altair as alt\nalt.Chart(alt.Data(values=[])).mark_bar()',
  });
  const { exitCode, out } = await troupe(['run', '--output-dir', 'elements', name]);
  assert.equal(exitCode, 0);
  for (const shown of [
    /^Orders: 5 \(today\)$/m,
    /^One:\n+first page\n+Two:\n+second page$/m,
    /^Why:\n+because$/m,
    /^graph TD\nA-->B$/m,
    /^data\.csv: text\/csv saved: .*load-1\.csv$/m,
    /^audio saved: .*sound-1\.wav$/m,
  ]) {
    assert.match(out, shown);
  }
  assert.equal(readFileSync(join(shell.cwd, 'elements', 'load-1.csv'), 'utf8'), 'a,b');
});

test('redirected output has only the last state of a progress bar, and no escape sequences', async () => {
  const name = file('progress.py', {
    bar: `for n in (10, 50, 100): print("\\r\\x1b[32m%3d%%\\x1b[0m" % n, end="", flush=True)
print()
print("done", end="")`,
  });
  const { out } = await troupe(['run', name]);
  assert.match(out, /^100%\ndone\n✓/m);
  assert.ok(!out.includes('\r') && !out.includes('\u001b'));
});
