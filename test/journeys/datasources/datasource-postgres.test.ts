/** Notebooks and a real PostgreSQL. */
import assert from 'node:assert/strict';
import test, { type TestContext } from 'node:test';
import { Client } from 'pg';
import { postgresConnection } from '#test/datasource/connections.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { postgresServer } from '#test/support/stand-ins/databases.ts';

const { skip } = postgresServer;
const server = await startServer(test);
const connection = postgresConnection();
await server.request('POST', '/api/v3/datasources', {
  body: { slug: 'sales', connection },
});
const IMPORTS =
  'import json, marimo as mo, pandas, warnings\nfrom troupe import datasource\nwarnings.simplefilter("ignore")';
const notebook = await openNotebook(
  server,
  {
    imports: IMPORTS,
    sales: 'sales = datasource("sales")',
    sql: 'found = mo.sql("select n, n * 2 as twice from generate_series(1, 3) n", engine=sales)',
    shown: 'print(list(found["twice"]))',
  },
  { datasourceSlugs: ['sales'] },
);

/** The text that code printed, or its error. */
async function call(code: string) {
  const answer = await server.request('POST', '/api/cee/kernel/execute', {
    body: { code: `${IMPORTS}\nc = datasource("sales")\n${code}` },
    headers: { 'service-session-id': notebook.id },
  });
  const { stdout, errors } = Object(answer.body);
  return errors[0] === undefined ? String(stdout).trimEnd() : `${errors[0].type}: ${errors[0].message}`;
}

const VALUES: Readonly<Record<string, string>> = {
  '42::bigint': '42',
  '9223372036854775807': '9223372036854775807',
  '1::float8': '1.0',
  "'nan'::float8": 'nan',
  "'-infinity'::float8": '-inf',
  '1.10::numeric': "Decimal('1.10')",
  "'NaN'::numeric": "Decimal('NaN')",
  true: 'True',
  'null::int': 'None',
  '\'é "quoted" \\ and \' || chr(10)': `'é "quoted" \\\\ and \\n'`,
  "'\\x00ff'::bytea": "b'\\x00\\xff'",
  "date '2024-02-29'": 'datetime.date(2024, 2, 29)',
  "date '0044-03-15 BC'": "'0044-03-15 BC'",
  "time '12:00:00.5'": 'datetime.time(12, 0, 0, 500000)',
  "timestamp '2024-01-02 03:04:05'": 'datetime.datetime(2024, 1, 2, 3, 4, 5)',
  "timestamp 'infinity'": "'infinity'",
  "uuid '6f9619ff-8b86-d011-b42d-00cf4fc964ff'": "UUID('6f9619ff-8b86-d011-b42d-00cf4fc964ff')",
  'jsonb \'{"a": [1, null]}\'': "{'a': [1, None]}",
  "interval '1 day'": "'1 day'",
  'array[1,2]': "'{1,2}'",
};

for (const [sql, python] of Object.entries(VALUES)) {
  test(`${sql} becomes ${python} in Python`, { skip }, async () => {
    const code = `print(repr(c.execute(${JSON.stringify(`select ${sql}`)}).fetchone()[0]))`;
    assert.equal(await call(code), python);
  });
}

test('a time with a zone is the same moment in Python for every zone of the server', {
  skip,
}, async () => {
  const sql = "select timestamptz '2024-01-02 03:04:05.25+00'";
  const code = `print(c.execute("${sql}").fetchone()[0].astimezone(__import__("datetime").timezone.utc).isoformat())`;
  assert.equal(await call(code), '2024-01-02T03:04:05.250000+00:00');
});

test('a value that Python cannot represent changes no other value of its column', {
  skip,
}, async () => {
  const sql = "select d from unnest(array['2024-02-29', '0044-03-15 BC', null]::date[]) d";
  assert.equal(
    await call(`print([str(d) for (d,) in c.execute("${sql}")])`),
    "['2024-02-29', '0044-03-15 BC', 'None']",
  );
});

test('pandas.read_sql returns a frame with the types of the columns', { skip }, async () => {
  const sql =
    "select n, n * 0.5::float8 half, 't' || n t, now()::timestamp at, n = 1 as is_first from generate_series(1, 50000) n where n > ?";
  const code = `frame = pandas.read_sql("${sql}", c, params=[1])\nprint(len(frame), [str(one) for one in frame.dtypes], frame.half.sum())`;
  const [, length, dtypes, sum] = /^(\d+) (\[.*\]) (.*)$/.exec(await call(code)) ?? [];
  assert.deepEqual([length, sum], ['49999', '625012499.5']);
  assert.match(dtypes ?? '', /^\['int64', 'float64', '(str|object)', 'datetime64\[\w+\]', 'bool'\]$/);
});

test('pandas.read_sql in chunks that is stopped early leaves no statement open', { skip }, async () => {
  const code = `for _ in range(40):
    next(pandas.read_sql("select n from generate_series(1, 100000) n", c, chunksize=10))
print(c.execute("select 1").fetchall())`;
  assert.equal(await call(code), '[(1,)]');
});

test('mo.sql accepts a datasource as its engine', { skip }, async () => {
  const runId = await notebook.submit(['shown']);
  const { status, output } = await server.client.waitForRun(runId);
  assert.equal(status, 'completed', JSON.stringify(output));
  assert.match(JSON.stringify(output), /\[2, 4, 6\]/);
});

test('a row beyond the limit raises DataError, and the next statement works', { skip }, async () => {
  const message = await call(`c.execute("select repeat('x', 17000000)").fetchall()`);
  assert.match(message, /^DataError: A row of the result is larger than 16 MiB\./);
  assert.equal(await call('print(c.execute("select 2").fetchall())'), '[(2,)]');
});

test('several statements in one query are refused', { skip }, async () => {
  assert.match(
    await call('c.execute("select 1; select 2")'),
    /^ProgrammingError: cannot insert multiple commands/,
  );
});

test('settings of a statement end with the statement, and transactions over several statements are refused', {
  skip,
}, async () => {
  const code = `c.execute("set application_name to 'left behind'")
print(c.execute("select current_setting('application_name')").fetchall())`;
  assert.equal(await call(code), "[('troupe',)]");
  for (const sql of [
    'begin',
    ' /* a */ BEGIN TRANSACTION READ ONLY',
    'start transaction',
    'rollback',
    'savepoint s',
  ]) {
    assert.match(
      await call(`c.execute("${sql}")`),
      /^ProgrammingError: Every statement is committed on its own: transactions/,
    );
  }
});

/** Returns a function that counts the statements with this mark that the database executes. */
async function countStatements(t: TestContext, mark: string): Promise<() => Promise<number>> {
  const watcher = new Client({ connectionString: connection.connection_string });
  await watcher.connect();
  t.after(() => watcher.end());
  return async () => {
    const { rows } = await watcher.query(
      `select count(*)::int n from pg_stat_activity where state = 'active' and query like '%${mark}%' and pid <> pg_backend_pid()`,
    );
    return rows[0].n;
  };
}

test('cancelling a run ends its statement in the database', { skip }, async (t) => {
  const count = await countStatements(t, 'to be cancelled');
  const opened = await openNotebook(
    server,
    {
      slow: `from troupe import datasource\ndatasource("sales").execute("select pg_sleep(600) /* to be cancelled */")`,
    },
    { datasourceSlugs: ['sales'] },
  );
  const runId = await opened.submit(['slow']);
  await eventually('the statement runs', async () => (await count()) > 0);
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  await eventually('the statement has ended', async () => (await count()) === 0);
});

/** The first rows come at once, and the rows after the 300th never. */
const ENDLESS = 'select n, case when n > 300 then pg_sleep(600) is null end from generate_series(1, 9000) n';

test('cancelling a run ends its statements also while its code does something else, and those of other runs go on', {
  skip,
}, async (t) => {
  const count = await countStatements(t, 'left behind');
  const opened = await openNotebook(
    server,
    {
      earlier: `from troupe import datasource\nsales = datasource("sales")\nkept = sales.execute("select n from generate_series(1, 9000) n")`,
      other: `import time\ncursor = sales.execute("${ENDLESS} /* left behind */")\nprint("waits")\ntime.sleep(600)`,
      later: 'print(kept.fetchone()[0], len(kept.fetchmany(400)))',
    },
    { datasourceSlugs: ['sales'] },
  );
  await opened.run(['earlier']);
  const events = await opened.events();
  const runId = await opened.submit(['other']);
  await events.until(({ type }) => type === 'console-output');
  await eventually('the statement runs', async () => (await count()) > 0);
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  await eventually('the statement has ended', async () => (await count()) === 0);
  await opened.run(['later']);
  assert.equal(events.printed('later'), '1 400\n');
});

test('a statement whose cursor nobody has any more ends with its run', { skip }, async (t) => {
  const count = await countStatements(t, 'forgotten');
  const opened = await openNotebook(
    server,
    {
      a: `from troupe import datasource\nrow = datasource("sales").execute("${ENDLESS} /* forgotten */").fetchone()`,
    },
    { datasourceSlugs: ['sales'] },
  );
  await opened.run(['a']);
  await eventually('the statement has ended', async () => (await count()) === 0);
});

test('several threads of several sessions can query at once, and each gets its own rows', {
  skip,
}, async () => {
  const other = await openNotebook(server, {}, { datasourceSlugs: ['sales'] });
  const code = (offset: number) => `
import threading
from troupe import datasource
found = {}
def ask(n):
    rows = datasource("sales").execute("select g * ? from generate_series(1, 20000) g", [n]).fetchall()
    found[n] = sum(value for (value,) in rows) // n
threads = [threading.Thread(target=ask, args=(n,)) for n in range(${offset}, ${offset} + 8)]
for one in threads: one.start()
for one in threads: one.join()
print(sorted(found.items()))`;
  const answers = await Promise.all(
    [
      [notebook.id, 1],
      [other.id, 101],
    ].map(([id, offset]) =>
      server.request('POST', '/api/cee/kernel/execute', {
        body: { code: code(Number(offset)) },
        headers: { 'service-session-id': String(id) },
      }),
    ),
  );
  const expected = (offset: number) =>
    `[${Array.from({ length: 8 }, (_, at) => `(${offset + at}, 200010000)`).join(', ')}]`;
  assert.deepEqual(
    answers.map(({ body }) => String(Object(body).stdout).trim()),
    [expected(1), expected(101)],
  );
});
