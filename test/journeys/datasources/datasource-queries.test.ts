// own process: it reads the memory of this process
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { memoryHas } from '#test/support/process-memory.ts';
import { processSeenAs } from '#test/support/processes.ts';
import { sendRaw } from '#test/support/raw-request.ts';
import { startServer } from '#test/support/server-fixture.ts';

const server = await startServer(test);

const MAKE_DATABASE = `
import os, sqlite3
if os.path.exists("numbers.db"): os.remove("numbers.db")
made = sqlite3.connect("numbers.db")
made.execute("create table numbers (n integer, name text, half real)")
made.executemany("insert into numbers values (?, ?, ?)", [(n, f"number {n}", n / 2) for n in range(1, 20001)])
made.commit(); made.close()
`;

await server.request('POST', '/api/v3/datasources', {
  body: { slug: 'numbers', connection: { kind: 'sqlite', path: 'numbers.db' } },
});
const notebook = await openNotebook(server, {}, { datasourceSlugs: ['numbers', 'absent'] });
assert.equal((await call(MAKE_DATABASE)).success, true);

/** The text that code printed, or the class of its error. */
async function call(code: string, sessionId: string = notebook.id) {
  const answer = await server.request('POST', '/api/cee/kernel/execute', {
    body: { code },
    headers: { 'service-session-id': sessionId },
  });
  const { success, stdout, errors } = Object(answer.body);
  return {
    success,
    printed: String(stdout).trimEnd().split('\n'),
    error: errors[0]?.type,
    message: errors[0]?.message,
  };
}

const query = (rest: string) =>
  call(`from troupe import datasource\nwith datasource("numbers") as c:\n    ${rest}`);

test('a cursor describes its columns and fetches one row, some rows, or all remaining rows', async () => {
  const { printed } = await query(
    [
      'k = c.cursor()',
      'k.execute("select n, name, half from numbers order by n limit 7")',
      'print([column[:2] for column in k.description])',
      'print(k.fetchone(), k.fetchmany(2), len(k.fetchall()), k.fetchone())',
    ].join('\n    '),
  );
  assert.deepEqual(printed, [
    "[('n', 'integer'), ('name', 'text'), ('half', 'float')]",
    "(1, 'number 1', 0.5) [(2, 'number 2', 1.0), (3, 'number 3', 1.5)] 4 None",
  ]);
});

test('parameters replace question marks, except quoted question marks', async () => {
  const { printed } = await query(
    `print(c.execute("select '?', n from numbers where n = ? and name <> ? -- ?", [3, "x'; drop"]).fetchall())`,
  );
  assert.deepEqual(printed, ["[('?', 3)]"]);
});

test('a whole float reaches the database as a float', async () => {
  const { printed } = await query(
    [
      'import numpy',
      'given = [2.0, numpy.float64(2), 2, numpy.int64(2), 2**53, 1e300, numpy.str_("a")]',
      'print(c.execute("select ? / 4, ? / 4, ? / 4, ? / 4, ? / 4, ?, ?", given).fetchall())',
    ].join('\n    '),
  );
  assert.deepEqual(printed, ["[(0.5, 0.5, 0, 0, 2251799813685248, 1e+300, 'a')]"]);
});

test('a wrong number of parameters raises ProgrammingError', async () => {
  assert.equal((await query('c.execute("select ? + ?", [1])')).error, 'ProgrammingError');
  assert.equal((await query('c.execute("select n from numbers", [1])')).error, 'ProgrammingError');
});

test('an infinite parameter, and text that only looks like a time, reach the database unchanged', async () => {
  const { printed } = await query(
    [
      'import numpy, pandas',
      'given = [float("inf"), -numpy.inf, pandas.NaT, numpy.datetime64("2026-01-02T03:04:05.000000006", "ns")]',
      'print(c.execute("select ? > 1e300, ? < -1e300, ?, ?", given).fetchall())',
    ].join('\n    '),
  );
  assert.deepEqual(printed, ["[(1, 1, None, '2026-01-02 03:04:05')]"]);
});

for (const given of ['{"n": 3}', '"3"', '{3}', 'b"3"']) {
  test(`parameters that are not a list, such as ${given}, raise ProgrammingError`, async () => {
    assert.equal((await query(`c.execute("select ?", ${given})`)).error, 'ProgrammingError');
  });
}

test('many rows arrive complete and in order, and can be made into a DataFrame', async () => {
  const { printed } = await query(
    [
      'import pandas, warnings',
      'warnings.simplefilter("ignore")',
      'frame = pandas.read_sql("select n, half from numbers order by n", c)',
      'print(len(frame), list(frame.n[:2]), list(frame.n[-2:]), frame.half.sum())',
    ].join('\n    '),
  );
  assert.deepEqual(printed, ['20000 [1, 2] [19999, 20000] 100005000.0']);
});

test('iterating, several open cursors and early closing work together', async () => {
  const { printed } = await query(
    [
      'a, b = c.cursor(), c.cursor()',
      'a.execute("select n from numbers order by n")',
      'b.execute("select n from numbers order by n desc")',
      'print(next(a), next(b), next(a), next(b))',
      'a.close()',
      'print(next(b))',
    ].join('\n    '),
  );
  assert.deepEqual(printed, ['(1,) (20000,) (2,) (19999,)', '(19998,)']);
});

for (const [what, code, error] of [
  [
    'a statement that the database does not accept',
    'c.execute("select nonsense from nowhere")',
    'ProgrammingError',
  ],
  ['fetching without a result', 'c.cursor().fetchall()', 'ProgrammingError'],
  ['a closed cursor', 'k = c.cursor(); k.close(); k.execute("select 1")', 'InterfaceError'],
  ['a closed connection', 'c.close(); c.cursor()', 'InterfaceError'],
  ['a parameter of an unsupported type', 'c.execute("select ?", [object()])', 'TypeError'],
] as const) {
  test(`${what} raises ${error}`, async () => {
    assert.equal((await query(code)).error, error);
  });
}

test('a datasource that the notebook does not list is refused, even if the datasource exists', async () => {
  await server.request('POST', '/api/v3/datasources', {
    body: { slug: 'unlisted', connection: { kind: 'sqlite', path: 'numbers.db' } },
  });
  for (const slug of ['unlisted', 'absent', 'never']) {
    const { error } = await call(`from troupe import datasource\ndatasource("${slug}").execute("select 1")`);
    assert.equal(error, 'InterfaceError', slug);
  }
});

test('notebook code has the datasource rights of the member who opened the session', async () => {
  const { client, owner } = server;
  await client.members.create({ userId: 'edith', role: 'editor' });
  const { token } = await client.accessTokens.create({
    name: 'edith',
    userId: 'edith',
    scopes: ['workspaceRuntime:connect', 'datasource:read'],
  });
  const hers = { client: server.clientOf({ token, workspaceId: owner.workspaceId }) };
  const opened = await openNotebook(hers, {}, { datasourceSlugs: ['numbers'] });
  const code = 'from troupe import datasource\nprint(datasource("numbers").execute("select 1").fetchall())';
  assert.equal((await call(code, opened.id)).error, 'InterfaceError');
  await server.request('POST', '/api/v3/datasources/numbers/grants', { body: { subject: 'user:edith' } });
  assert.deepEqual((await call(code, opened.id)).printed, ['[(1,)]']);
  await server.request('DELETE', '/api/v3/datasources/numbers/grants/user:edith');
  assert.equal((await call(code, opened.id)).error, 'InterfaceError');
});

test('a session that was opened with a token without datasource:read has no datasources', async () => {
  const { client, owner } = server;
  const { token } = await client.accessTokens.create({
    name: 'runtime',
    scopes: ['workspaceRuntime:connect'],
  });
  const opened = await openNotebook(
    { client: server.clientOf({ token, workspaceId: owner.workspaceId }) },
    {},
    { datasourceSlugs: ['numbers'] },
  );
  const { error } = await call(
    'from troupe import datasource\ndatasource("numbers").execute("select 1")',
    opened.id,
  );
  assert.equal(error, 'InterfaceError');
});

test('an interrupt ends a statement, and the next statement works', async () => {
  const slow = 'with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r';
  const notebookOfItsOwn = await openNotebook(
    server,
    {
      slow: `from troupe import datasource\nprint("asking", flush=True)\ndatasource("numbers").execute("${slow}")`,
    },
    { datasourceSlugs: ['numbers'] },
  );
  const events = await notebookOfItsOwn.events();
  const runId = await notebookOfItsOwn.submit(['slow']);
  await events.until(({ type }) => type === 'console-output');
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  const after = await call(
    'from troupe import datasource\nprint(datasource("numbers").execute("select 7").fetchall())',
    notebookOfItsOwn.id,
  );
  assert.deepEqual(after.printed, ['[(7,)]']);
});

test('the environment and the memory of a kernel contain no credential', async () => {
  const canary = `canary-${randomUUID()}`;
  await server.request('POST', '/api/v3/datasources', {
    body: {
      slug: 'secret',
      connection: {
        kind: 'postgres',
        connection_string: `postgres://u:${canary}@127.0.0.1:1/d`,
        schema: 'public',
      },
    },
  });
  const opened = await openNotebook(server, {}, { datasourceSlugs: ['secret'] });
  const tried = await call(
    'from troupe import datasource\ndatasource("secret").execute("select 1")',
    opened.id,
  );
  assert.deepEqual([tried.error, tried.message], ['OperationalError', 'The server refused the connection.']);
  const witness = `witness-${randomUUID()}`;
  const { printed } = await call(
    `import builtins, os\nbuiltins.kept = "${witness}"\nprint(os.getpid(), os.readlink("/proc/self/ns/pid"))`,
    opened.id,
  );
  const [seenAs = '', namespace = ''] = printed[0]!.split(' ');
  const { pid } = processSeenAs(Number(seenAs), namespace)!;
  assert.notEqual(memoryHas(pid, witness), false, 'what is there is found');
  assert.notEqual(memoryHas(pid, canary), true);
  assert.equal(readFileSync(`/proc/${pid}/environ`).includes(canary), false);
});

test('malformed calls of a kernel are answered with an error and do not end the kernel', async () => {
  const { printed } = await call(`
import json
from troupe import channel
for method, fields in [("execute", {}), ("execute", {"slug": 1, "sql": 2}), ("fetch", {"cursor": "x"}), ("fetch", {}),
                       ("close", {"cursor": None}), ("nonsense", {}), ("execute", {"slug": "numbers", "sql": "select ?", "parameters": []}),
                       ("execute", {"slug": "numbers", "sql": "select ?", "parameters": {}, "cursor": 10**6})]:
    print(method, json.loads(bytes(channel.ask(method, **fields))).get("error", {}).get("kind"))
`);
  assert.deepEqual(printed, [
    'execute InterfaceError',
    'execute InterfaceError',
    'fetch InterfaceError',
    'fetch InterfaceError',
    'close None',
    'nonsense InterfaceError',
    'execute InterfaceError',
    'execute ProgrammingError',
  ]);
});

test('a request of another workspace sees no datasource of this workspace', async () => {
  const stranger = await server.stranger();
  const answer = await sendRaw(server.baseUrl, 'GET', '/api/v3/datasources', stranger, {});
  assert.deepEqual(answer.body, { items: [], nextCursor: null });
});
