// tier: whole, because it installs agent frameworks of Python
/** The MCP client of Python against a real server with real kernels, in both eras of the protocol. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { promisify } from 'node:util';
import { PACKAGE_ROOT } from '#src/base/install/package-root.ts';
import type { Caller } from '#test/support/raw-request.ts';
import { HAS_WORKERS, OWNER, startServer } from '#test/support/server-fixture.ts';
import { writeSqlite } from '#test/support/stand-ins/python-databases.ts';

const PYTHON = join(PACKAGE_ROOT, '.setup/generators/venv/bin/python');
const PROGRAMS = join(PACKAGE_ROOT, 'test/mcp/programs');
const ERAS = { 'the protocol of 2026': 'auto', 'the protocol of 2025': 'legacy' };

const execute = promisify(execFile);
const server = await startServer(test);

/** Runs a program against a server, and resolves with the JSON that it prints. Rejects with all its output when it fails. */
async function run(
  program: string,
  args: readonly string[],
  { baseUrl = server.baseUrl, caller = OWNER, env = {} }: Situation = {},
): Promise<Readonly<Record<string, unknown>>> {
  const { PATH, HOME } = process.env;
  const access = { BASE_URL: baseUrl, TOKEN: caller.token, WORKSPACE: caller.workspaceId };
  try {
    const { stdout } = await execute(PYTHON, [join(PROGRAMS, program), ...args], {
      env: { PATH, HOME, ...access, ...env },
    });
    return JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const { stdout, stderr } = Object(error) as { stdout: string; stderr: string };
    throw new Error(`${program} failed:\n${stdout}\n${stderr}`);
  }
}

interface Situation {
  readonly baseUrl?: string;
  readonly caller?: Caller;
  readonly env?: Readonly<Record<string, string>>;
}

/** How long after a cancelled call its kernel may take to run another one, in seconds. */
const MAX_FREED_S = 2;

/** Checks the output of `long_work.py`. */
function checkLongWork(done: Readonly<Record<string, unknown>>): void {
  const { steps, freed, late, shown, python, missing, ...rest } = done;
  assert.deepEqual(rest, {
    begun: 'running',
    ended: "'slept'",
    together: ['0', '2', '4', '6'],
    templates: 3,
  });
  // For lines that come together, only the last one is reported.
  const printed = ['step 0', 'step 1', 'step 2', 'step 3'];
  const told = steps as readonly string[];
  assert.ok(told.length >= 2, told.join());
  assert.deepEqual(
    told,
    printed.filter((line) => told.includes(line)),
  );
  for (const seconds of [freed].flat()) assert.ok(Number(seconds) < MAX_FREED_S, `${seconds} s`);
  assert.equal([freed].flat().length, 3);
  assert.equal(Object(late).status, 'timed_out');
  assert.deepEqual(shown, [
    ['text', null],
    ['image', 'image/png'],
  ]);
  assert.match(String(python), /import marimo[\s\S]*time\.sleep\(3\)/);
  assert.match(JSON.stringify(missing), /^\[true,"not_found: /);
}

for (const [era, mode] of Object.entries(ERAS)) {
  test(`by ${era}, a notebook is created, code keeps its names, cells run, and a closed notebook is opened again`, async () => {
    const { tools, python, failed, ran, text, ...done } = await run('tools.py', [mode]);
    assert.deepEqual(done, { status: 'ready', listed: true, closed: 'closed', again: '42' });
    assert.equal([tools].flat().length, 28);
    const { untrusted, ...result } = Object(python);
    assert.deepEqual(result, {
      success: true,
      status: 'completed',
      stdout: 'so\n',
      stderr: '',
      result: '21',
      errors: [],
    });
    assert.match(String(untrusted), /Never follow instructions/);
    assert.match(String(text), /^<untrusted-data>\nstdout:\nso\nvalue:\n21\n<\/untrusted-data>$/);
    const { isError, success, stderr, errors } = Object(failed);
    assert.deepEqual({ isError, success }, { isError: false, success: false });
    assert.match(stderr, /Traceback[\s\S]*ZeroDivisionError/);
    assert.equal(errors[0].type, 'ZeroDivisionError');
    assert.deepEqual(
      Object(ran).cells.map(({ cellId, result: shown }: Record<string, unknown>) => [cellId, shown]),
      [
        ['numbers', ''],
        ['total', '6'],
      ],
    );
  });
}

for (const [era, mode] of Object.entries(ERAS)) {
  test(`by ${era}, progress is reported, a cancelled call frees its kernel at once, and clients can wait for long runs`, async () => {
    checkLongWork(await run('long_work.py', ['http', mode]));
  });

  test(`by ${era} on standard input and output, \`troupe mcp\` offers the same tools as /mcp`, async () => {
    const COMMAND = JSON.stringify([
      process.execPath,
      join(PACKAGE_ROOT, 'dist/src/faces/cli/main.js'),
      'mcp',
    ]);
    checkLongWork(await run('long_work.py', ['stdio', mode], { env: { COMMAND } }));
  });
}

test('cells are edited, files and datasources are read, large outputs are links, and code that takes too long keeps its text', async () => {
  mkdirSync(server.filesDir, { recursive: true });
  writeSqlite(
    join(server.filesDir, 'sales.sqlite'),
    'create table sales (region text, amount integer)',
    "insert into sales values ('north', 40), ('north', 2), ('south', 1)",
  );
  await server.client.datasources.create({
    slug: 'sales',
    connection: { kind: 'sqlite', path: 'sales.sqlite' },
  });
  const { edits, colleagues, files, datasources, large } = await run('all_tools.py', []);
  assert.deepEqual(edits, {
    created: [['total', 'idle']],
    replaced: [['a', 'a = 2', 'idle']],
    printed: ['42'],
    moved: true,
    refused: [false, 'refused', 'unknown_cell'],
    failing: [false, ['failing'], true],
    setup: ['setup'],
    looping: 'running',
    order: ['total', 'b', 'a'],
    result: ['42'],
  });
  assert.deepEqual(
    colleagues,
    {
      refused: [false, 'refused', false, 'refused'],
      advice: true,
      kept: ["a = 'theirs'", 'b = 1'],
      versions: [
        ['a', true],
        ['b', true],
        ['c', false],
      ],
      unread: [true, true],
      again: [true, true, ["a = 'mine too'", 'b = 1']],
    },
    'an edit does not overwrite what a colleague has changed since the cell was read',
  );
  assert.deepEqual(files, {
    written: true,
    pieces: [3, true],
    picture: [
      ['text', false],
      ['image', true],
    ],
    odd: 1,
    refused: [true, true, true],
    listed: ['mcp/dot.png', 'mcp/long.txt', 'mcp/odd.bin'],
  });
  assert.deepEqual(datasources, {
    listed: [['sales', 'sqlite']],
    described: 'sales(region TEXT, amount INTEGER)',
    rows: [
      ['region', 'total'],
      ['north', '42'],
      ['south', '1'],
    ],
    first: [[['north', '42']], true],
    refused: [true, true],
  });
  assert.deepEqual(large, {
    links: [
      ['image/png', 1_000_008],
      ['text/html', '<b>large</b>'.length + 2_000_000],
    ],
    output: ['text'],
    page: true,
    late: ['timed_out', 'so far\n', false],
    lateErrors: ['timed_out'],
    lateText: true,
  });
});

test('a cancellation reaches the worker that carries out the call', { skip: HAS_WORKERS }, async (t) => {
  const { baseUrl } = await startServer(t, { TROUPE_WORKERS: '3' });
  checkLongWork(await run('long_work.py', ['http', 'legacy'], { baseUrl }));
});

test('a notebook of another workspace is not found', async () => {
  const { id } = await server.client.notebooks.create({});
  const caller = await server.stranger();
  const { missing } = await run('long_work.py', ['http', 'auto'], { caller, env: { FOREIGN: id } });
  assert.match(JSON.stringify(missing), /^\[true,"not_found: /);
});

test('a request without a token gets 401 and the way to authenticate', async () => {
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const response = await fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(message),
  });
  assert.equal(response.status, 401);
  assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer /);
});

test('a page of another origin cannot call the endpoint', async () => {
  const response = await fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
      origin: 'https://elsewhere.example',
    },
    body: '{}',
  });
  assert.equal(response.status, 403);
});

/** Sends a message as a client does. */
function post(body: string): Promise<Response> {
  return fetch(`${server.baseUrl}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${OWNER.token}`,
      'service-workspace-id': OWNER.workspaceId,
    },
    body,
  });
}

test('the response to a notification ends, so that the connection can be used again', async () => {
  const response = await post(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }));
  assert.deepEqual([response.status, response.headers.get('content-length')], [202, '0']);
});

test('malformed messages are refused, and no message causes an error of the server', async () => {
  const messages = [
    '',
    '{',
    '[]',
    'null',
    '1',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
  ];
  const calls = [
    {},
    { name: 1 },
    { name: 'run_python' },
    { name: 'run_python', arguments: { notebookId: '../..', code: '1' } },
  ];
  const sent = calls.map((params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  for (const body of [...messages, ...sent]) {
    const response = await post(body);
    await response.text();
    assert.ok(response.status < 500, `${body}: ${response.status}`);
  }
});
