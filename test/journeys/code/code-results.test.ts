import assert from 'node:assert/strict';
import test from 'node:test';
import { callCode } from '#test/support/code-call.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);
const { client } = server;
/** Shared by the calls that do not change it. */
const notebook = await openNotebook(server, { a: 'x = 41\nitems = [1]', b: 'y = x + 1' });
await notebook.run(['a', 'b']);
const run = (code: string) => callCode(client, notebook.id, code);
const SILENT = { success: true, output: null, stdout: '', stderr: '', media: [], errors: [] };

test('every result of a call has the same six members', async () => {
  const answer = await server.request('POST', '/api/cee/kernel/execute', {
    headers: { 'service-session-id': notebook.id },
    body: { code: 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nx + 1' },
  });
  assert.equal(answer.status, 200);
  assert.deepEqual(answer.body, {
    success: true,
    output: { mimetype: 'text/html', data: "<pre class='text-xs'>42</pre>", text: '42' },
    stdout: 'out\n',
    stderr: 'err\n',
    media: [],
    errors: [],
  });
});

test('code sees the variables of the notebook, adds no names to it, and can change values in place', async () => {
  assert.equal((await run('items.append(x)\nx = 0\nnew = 1')).success, true);
  assert.equal((await run('print(x, y, items)')).stdout, '41 42 [1, 41]\n');
  assert.deepEqual((await run('new')).errors, [
    { type: 'NameError', message: "name 'new' is not defined", cellId: null },
  ]);
});

const FAILURES = {
  'an exception': ['1 / 0', 'ZeroDivisionError', /division by zero/],
  'a syntax error': ['def :', 'syntax', /invalid syntax/],
  'an unknown name': ['nothing_like_it', 'NameError', /nothing_like_it/],
  'an exit': ['import sys\nsys.exit(3)', 'SystemExit', /3/],
  'an interrupt of its own': ['raise KeyboardInterrupt', 'interruption', /interrupted/],
  'a question nobody answers': ['input("name? ")', 'EOFError', /EOF/],
  'a missing import': ['import no_such_module', 'ModuleNotFoundError', /no_such_module/],
  'too much memory': ['bytearray(2**60)', 'MemoryError', /./],
  'recursion without end': ['def f(): return f()\nf()', 'RecursionError', /recursion/],
  'a group of exceptions': ['raise ExceptionGroup("all", [ValueError(1)])', 'ExceptionGroup', /all/],
  'a code-mode error': [
    'import marimo._code_mode as cm\ncm.get_context().create_cell("1")',
    'RuntimeError',
    /async with/,
  ],
} as const;

for (const [what, [code, type, message]] of Object.entries(FAILURES)) {
  test(`${what} returns success false, and the kernel lives`, async () => {
    const result = await run(`print("before")\n${code}`);
    assert.equal(result.success, false);
    assert.equal(result.output, null);
    assert.deepEqual(
      result.errors.map((error) => [error.type, error.cellId]),
      [[type, null]],
    );
    assert.match(result.errors[0]!.message, message);
    assert.equal(result.stdout, type === 'syntax' ? '' : 'before\n');
    if (type !== 'interruption') assert.notEqual(result.stderr, '', 'people read the traceback there');
    assert.equal((await run('print(x)')).stdout, '41\n');
  });
}

test('tracebacks name the line in the code', async () => {
  const { stderr } = await run('def f():\n    return 1 / 0\n\nf()');
  assert.match(stderr, /line 4, in <module>\n {4}f\(\)/);
  assert.match(stderr, /line 2, in f\n {4}return 1 \/ 0/);
  assert.match(stderr, /ZeroDivisionError: division by zero\n$/);
});

test('the last expression is the output; code without a last expression, or with an asynchronous block at its end, has no output', async () => {
  const rows: [string, string | null][] = [
    ['"text"', "<pre class='text-xs'>&#x27;text&#x27;</pre>"],
    ['{"a": [1]}', '{"a": [1]}'],
    ['import asyncio\nawait asyncio.sleep(0, 7)', "<pre class='text-xs'>7</pre>"],
    ['x;', null],
    ['None', null],
    ['z = 1', null],
    ['', null],
    ['import marimo._code_mode as cm\nasync with cm.get_context() as ctx:\n    7', null],
  ];
  for (const [code, shown] of rows) assert.equal((await run(code)).output?.data ?? null, shown, code);
  const { output } = await run('import marimo as mo\nmo.md("# Title")');
  assert.equal(output?.mimetype, 'text/markdown');
});

test('printed text in every writing system arrives unchanged', async () => {
  const text = 'žluťoučký 中文 العربية 👩‍👩‍👧 \u0000\u001b[31m\r\n\ttab \\n "q" </script>';
  assert.deepEqual(await run(`print(${JSON.stringify(text)})`), { ...SILENT, stdout: `${text}\n` });
  assert.deepEqual(await run('print("\\ud800")'), { ...SILENT, stdout: '\\ud800\n' });
  assert.equal((await run('raise ValueError("\\ud800")')).errors[0]?.message, '\\ud800');
});

test('output of subprocesses and C code is part of the result', async () => {
  assert.equal((await run('import subprocess\nsubprocess.run(["echo", "child"])\nNone')).stdout, 'child\n');
  assert.equal((await run('import os\nos.write(2, b"raw\\n")\nNone')).stderr, 'raw\n');
});

test('very long output is cut in the middle, with a notice', async () => {
  const { success, stdout, stderr } = await run('for i in range(400_000): print(f"line {i:06}")');
  assert.deepEqual([success, stderr], [true, '']);
  assert.match(stdout, /^line 000000\n/);
  assert.match(stdout, /line 399999\n$/);
  const left = /\n… (\d+) characters left out …\n/.exec(stdout);
  assert.ok(left, 'a note stands in the gap');
  assert.equal(stdout.length - left[0].length + Number(left[1]), 400_000 * 12);
  assert.ok(stdout.length < 1.1 * 1024 * 1024);
});

test('a warning goes to stderr and is not a failure', async () => {
  const { success, stderr } = await run('import warnings\nwarnings.warn("careful")');
  assert.equal(success, true);
  assert.match(stderr, /UserWarning: careful/);
});

test('the value passed to mo.stop is the output', async () => {
  const { success, output } = await run('import marimo as mo\nmo.stop(True, "halt")\n1 / 0');
  assert.equal(success, true);
  assert.match(String(output?.data), /halt/);
});

test('text printed by a thread or task of an earlier call is not part of a later result', async () => {
  const start = (how: string) => `import asyncio, builtins, threading\nbuiltins.go = threading.Event()
def tell():
    go.wait()
    print("LATE")
async def tell_later():
    while not go.is_set(): await asyncio.sleep(0.001)
    print("LATE")
builtins.started = ${how}`;
  const rows: [string, string][] = [
    ['threading.Thread(target=tell)\nstarted.start()', 'started.join()'],
    ['__import__("marimo").Thread(target=tell)\nstarted.start()', 'started.join()'],
    ['asyncio.create_task(tell_later())', 'await started'],
  ];
  for (const [how, join] of rows) {
    assert.deepEqual(await run(start(how)), SILENT);
    assert.deepEqual(await run(`go.set()\n${join}\nprint("now")`), { ...SILENT, stdout: 'now\n' }, how);
  }
});
