import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { CodeResult } from '#src/contract/wire/session.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { IMAGE_CODE } from './notebook-file.ts';
import { Shell } from './troupe-process.ts';

const server = await startServer(test);
const { client } = server;
const shell = new Shell(test, server);
const notebook = await openNotebook(server, { a: 'x = 20' });
await notebook.run([]);
const env = { SERVICE_SESSION_ID: notebook.id };

const exec = (args: readonly string[], input = '') => shell.troupe(['code', 'exec', ...args], { env, input });

test('code from standard input creates and runs a cell, which the saved notebook contains', async () => {
  const input = [
    'import marimo._code_mode as cm',
    'async with cm.get_context() as ctx:',
    '    ctx.run_cell(ctx.create_cell("y = x + 22\\nprint(y)"))',
    '',
  ].join('\n');
  const { exitCode, out, err } = await exec(['--json'], input);
  assert.equal(exitCode, 0, err);
  const result: CodeResult = JSON.parse(out);
  assert.deepEqual([result.success, result.errors], [true, []]);
  assert.ok(result.stdout.startsWith('42\n'), result.stdout);
  const { serialization } = await client.notebooks.get(notebook.id);
  assert.deepEqual(
    serialization.cells.map(({ code }) => code),
    ['x = 20', 'y = x + 22\nprint(y)'],
  );
});

test('printed text of the code goes to the same stream of the command, and the value of the code is printed as text', async () => {
  const code = 'import sys\nprint("out")\nprint("err", file=sys.stderr)\nx + 1';
  assert.deepEqual(await exec(['-c', code]), { exitCode: 0, out: 'out\n21\n', err: 'err\n' });
});

test('the value of code is shown as Python writes it: text in quotes, tuples in parentheses', async () => {
  const shown = async (code: string) => (await exec(['-c', code])).out;
  assert.equal(await shown('[1.5, "1.5"]'), "[1.5, '1.5']\n");
  assert.equal(
    await shown('(1, (2,), {"a": None, "n": float("nan")})'),
    "(1, (2,), {'a': None, 'n': nan})\n",
  );
});

test('code that fails exits with 1, with and without --json', async () => {
  const failed = await exec(['-c', 'print("before")\n1 / 0']);
  assert.deepEqual([failed.exitCode, failed.out], [1, 'before\n']);
  assert.match(failed.err, /^Traceback[\s\S]*\nZeroDivisionError: division by zero\n$/);
  const { exitCode, out, err } = await exec(['--json', '-c', '1 / 0']);
  assert.deepEqual([exitCode, err], [1, '']);
  const { success, errors }: CodeResult = JSON.parse(out);
  assert.deepEqual(
    [success, errors],
    [false, [{ type: 'ZeroDivisionError', message: 'division by zero', cellId: null }]],
  );
});

test('code comes from a file, from standard input or from -c, and the session from the command line', async () => {
  writeFileSync(join(shell.cwd, 'ask.py'), 'print("from a file", x)');
  assert.equal((await exec(['ask.py'])).out, 'from a file 20\n');
  assert.equal((await exec(['-'], 'print("piped")')).out, 'piped\n');
  const named = await shell.troupe(['code', 'exec', '--session', notebook.id, '-c', 'print("named")']);
  assert.equal(named.out, 'named\n');
});

test('an image is saved in the requested directory', async () => {
  assert.match((await exec(['-c', IMAGE_CODE])).out, /^\[image, 70 bytes; --output-dir saves it\]\n$/);
  const { out } = await exec(['--output-dir', 'pictures', '-c', IMAGE_CODE]);
  assert.equal(out, 'image saved: ./pictures/output-1.png\n');
});

test('Ctrl-C interrupts the code, and the session is ready again', async () => {
  const events = await notebook.events();
  const code = 'import time\nprint("begun", flush=True)\ntime.sleep(60)';
  const child = shell.start(['code', 'exec', '-c', code], { env });
  await events.until((event) => JSON.stringify(event).includes('begun\\n'));
  child.interrupt();
  assert.equal((await child.ended).exitCode, 130);
  await events.until(({ type, data }) => type === 'session.status' && data.status === 'ready');
  await events[Symbol.asyncDispose]();
});

test('a missing session or missing code is a usage error that names the missing argument', async () => {
  const none = await shell.troupe(['code', 'exec', '-c', '1']);
  assert.equal(none.exitCode, 4);
  assert.match(none.err, /^troupe: Name a session, or set SERVICE_SESSION_ID: /);
  const both = await exec(['-c', '1', 'ask.py']);
  assert.deepEqual(both, { exitCode: 2, out: '', err: 'troupe: Use -c or a file, not both.\n' });
  const gone = await shell.troupe(['code', 'exec', '--session', 'nb_gone', '-c', '1']);
  assert.equal(gone.exitCode, 1);
  assert.match(gone.err, /\(not_found at \/api\/cee\/kernel\/execute, /);
});
