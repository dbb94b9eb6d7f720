/** Frames of pandas and polars from datasources, and into them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import test, { type TestContext } from 'node:test';
import { mariadbConnection, postgresConnection } from '#test/datasource/connections.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { mariadbServer, postgresServer } from '#test/support/stand-ins/databases.ts';

const server = await startServer(test);
const DATABASES = {
  postgres: { connection: postgresConnection(), skip: postgresServer.skip },
  mariadb: { connection: mariadbConnection(), skip: mariadbServer.skip },
  sqlite: { connection: { kind: 'sqlite', path: 'frames.db' }, skip: false },
  duckdb: { connection: { kind: 'duckdb', path: 'frames.duckdb' }, skip: false },
} as const;
for (const [slug, { connection }] of Object.entries(DATABASES))
  await server.request('POST', '/api/v3/datasources', { body: { slug, connection } });
const notebook = await openNotebook(server, {}, { datasourceSlugs: Object.keys(DATABASES) });
const PREPARATION = `
import datetime, decimal, json, warnings
warnings.simplefilter("error")
from troupe import datasource
import pandas, polars
`;
await call(`
import sqlite3, duckdb
duckdb.connect("frames.duckdb").close()
c = sqlite3.connect("frames.db")
names = ("numeric_ numeric", "integer_ integer", "real_ real", "blob_ blob", "text_ text", "boolean_ boolean", "date_ date", "undeclared")
c.execute(f"create table kinds ({', '.join(names)})")
c.executemany(f"insert into kinds values ({', '.join('?' * len(names))})", [[value] * len(names) for value in (1, 2**53 + 1, 0.5, float("inf"), None)])
c.executemany(f"insert into kinds values ({', '.join('?' * len(names))})", [["Infinity"] * len(names), ["１２"] * len(names), [b"12"] * len(names)])
c.commit()`);

/** The lines that code printed, or its error. */
async function call(code: string): Promise<string[]> {
  const answer = await server.request('POST', '/api/cee/kernel/execute', {
    body: { code: PREPARATION + code },
    headers: { 'service-session-id': notebook.id },
  });
  const { stdout, errors } = Object(answer.body);
  return errors[0] === undefined
    ? String(stdout).trimEnd().split('\n')
    : [`${errors[0].type}: ${errors[0].message}`];
}

/** A name that no other test uses, for a table that is dropped after the test. */
function tableFor(t: TestContext, slug: string): string {
  const table = `troupe_frames_${randomBytes(5).toString('hex')}`;
  t.after(() => call(`datasource("${slug}").execute("drop table if exists ${table}")`));
  return table;
}

const FRAME = `
frame = pandas.DataFrame({
    "whole": [1, -(2**60)], "half": [0.5, float("nan")], "text": ["é ' \\" \\\\", None], "yes": [True, False],
    "at": pandas.to_datetime(["2026-01-02 03:04:05.123456", None]), "moment": pandas.to_datetime(["2026-01-02T03:04:05+02:00", None], utc=True),
    "day": [datetime.date(2026, 1, 2), None], "bytes": [b"\\x00\\xff", None], "exact": [decimal.Decimal("1.25"), None],
    'odd " \` name': [10**15, 5], "nested": [[1], {"a": 2}], "kind": pandas.Categorical(["u", "v"]), "maybe": pandas.array([1, None], dtype="Int64"),
})
`;

test('mo.sql shows a column as text if Python cannot represent one of its dates or times', async () => {
  const printed = await call(`
import marimo as mo
c = datasource("duckdb")
found = mo.sql("select * from (values (date '2026-01-02', 1), (date '-43-03-15', 2), (null, 3)) v(d, n) order by n", engine=c, output=False)
print(found["d"].to_list(), found["n"].to_list())
cursor = c.execute("select date '2026-01-02' union all select date '20260-01-02'")
print(cursor.fetchone(), cursor.fetchone())`);
  assert.deepEqual(printed, [
    "['2026-01-02', '0044-03-15 (BC)', None] [1, 2, 3]",
    "(datetime.date(2026, 1, 2),) ('20260-01-02',)",
  ]);
});

test('a list is refused as a parameter, and arrays, lists and maps are returned as documented', async () => {
  const [refusal] = await call('datasource("duckdb").execute("select ?", [[1, 2]])');
  assert.equal(refusal, 'TypeError: a parameter cannot be list');
  const printed = await call(`
row = datasource("duckdb").execute("select [1, 2], map {'a': 1.5::decimal(3,1), 'b': null}, {'x': 9007199254740993}").fetchone()
print(*row)`);
  assert.deepEqual(printed, [
    "[1, 2] [{'key': 'a', 'value': '1.5'}, {'key': 'b', 'value': None}] {'x': '9007199254740993'}",
  ]);
});

test('an array of PostgreSQL is returned as text, and its to_json as a list', {
  skip: DATABASES.postgres.skip,
}, async () => {
  const printed = await call(`
c = datasource("postgres")
print(*c.execute("select array[1, 2], to_json(array[1, 2]), 2 = any(?::int[])", ["{1,2}"]).fetchone())`);
  assert.deepEqual(printed, ['{1,2} [1, 2] True']);
});

test('mo.sql shows zero dates and times beyond a day of MySQL', {
  skip: DATABASES.mariadb.skip,
}, async (t) => {
  const table = tableFor(t, 'mariadb');
  const printed = await call(`
import marimo as mo
c = datasource("mariadb")
c.execute("create table ${table} (n integer, t time(1), d date)")
c.execute("insert ignore into ${table} values (1, '100:00:00', '2026-01-02'), (2, '-01:00:00', '0000-00-00'), (3, '12:00:00.5', null)")
found = mo.sql("select t, d from ${table} order by n", engine=c, output=False)
print(found["t"].to_list(), found["d"].to_list())`);
  assert.deepEqual(printed, [
    "['100:00:00.0', '-01:00:00.0', '12:00:00.500000'] ['2026-01-02', '0000-00-00', None]",
  ]);
});

for (const slug of ['postgres', 'mariadb', 'sqlite'] as const) {
  const { skip } = DATABASES[slug];

  test(`the rowcount of a statement is the number of changed rows, in ${slug}`, { skip }, async (t) => {
    const table = tableFor(t, slug);
    const printed = await call(`
c = datasource("${slug}").cursor()
c.execute("create table ${table} (n integer)")
counts = [c.execute("insert into ${table} values (1), (2), (3)").rowcount]
counts.append(c.execute("update ${table} set n = n + 1 where n > ?", [1]).rowcount)
counts.append(c.execute("delete from ${table} where n = 77").rowcount)
counts.append(c.execute("select n from ${table}").rowcount)
c.executemany("insert into ${table} values (?)", [[5], [6]])
print(counts, c.rowcount)`);
    assert.deepEqual(printed, ['[3, 2, 0, -1] 2']);
  });

  test(`to_sql writes a frame with every common type, and reading returns the same frame, in ${slug}`, {
    skip,
  }, async (t) => {
    const table = tableFor(t, slug);
    const printed = await call(`${FRAME}
c = datasource("${slug}")
print(frame.to_sql("${table}", c))
back = pandas.read_sql("select * from ${table} order by 1", c)
print(list(back.columns) == ["index", *frame.columns])
for name in ("whole", "half", "text", 'odd " \` name', "kind", "maybe"):
    print(name, [None if pandas.isna(one) else one for one in back[name].tolist()])
first = back.iloc[0]
print(str(first["at"])[:26], str(first["moment"])[:19], str(first["day"])[:10], first["bytes"], float(first["exact"]), bool(first["yes"]), first["nested"])
print(back.iloc[1][["at", "moment", "day", "bytes", "exact"]].isna().all())`);
    assert.deepEqual(printed, [
      '2',
      'True',
      `whole [1, ${-(2n ** 60n)}]`,
      'half [0.5, None]',
      "text ['é \\' \" \\\\', None]",
      'odd " ` name [1000000000000000, 5]',
      "kind ['u', 'v']",
      'maybe [1.0, None]',
      "2026-01-02 03:04:05.123456 2026-01-02 01:04:05 2026-01-02 b'\\x00\\xff' 1.25 True [1]",
      'True',
    ]);
  });

  test(`to_sql fails for an existing table, or replaces, empties or extends the table, in ${slug}`, {
    skip,
  }, async (t) => {
    const table = tableFor(t, slug);
    const printed = await call(`
c = datasource("${slug}")
frame = pandas.DataFrame({"n": range(2500)})
count = lambda: c.execute("select count(*), max(n) from ${table}").fetchone()
frame.to_sql("${table}", c, index=False)
try:
    frame.to_sql("${table}", c, index=False)
except ValueError as error:
    print(error)
for given in (dict(if_exists="append", chunksize=700), dict(if_exists="delete_rows"), dict(if_exists="replace", dtype={"n": "numeric"})):
    frame.to_sql("${table}", c, index=False, **given)
    print(*(int(one) for one in count()))
print(c.execute("select n from ${table} where n = 3").description[0][1])`);
    assert.deepEqual(printed, [
      `Table '${table}' already exists.`,
      '5000 2499',
      '2500 2499',
      '2500 2499',
      slug === 'sqlite' ? 'other' : 'decimal',
    ]);
  });

  test(`polars reads whole results and batches, in ${slug}`, { skip }, async (t) => {
    const table = tableFor(t, slug);
    const printed = await call(`
c = datasource("${slug}")
pandas.DataFrame({"n": range(5000), "t": ["row"] * 5000}).to_sql("${table}", c, index=False)
read = lambda **given: polars.read_database("select n, t from ${table} order by n", c, **given)
print(read().shape, [str(one) for one in read().dtypes], read()["n"].sum())
print([one.shape for one in read(iter_batches=True, batch_size=2000)])
print(polars.read_database("select n from ${table} where n < ?", c, execute_options={"parameters": [3]})["n"].to_list())
print(polars.read_database("select n, t from ${table} where n < 0", c).shape)`);
    assert.deepEqual(printed, [
      "(5000, 2) ['Int64', 'String'] 12497500",
      '[(2000, 2), (2000, 2), (1000, 2)]',
      '[0, 1, 2]',
      '(0, 2)',
    ]);
  });
}

const SQLITE_COLUMNS = [
  "x'00ff'",
  "x''",
  'sum(i) from (select 9007199254740992 as i union all select 1)',
  '9223372036854775807 union all select -9223372036854775808',
  '1e999 union all select -1e999 union all select 1.0',
  "'Infinity' union all select 'NaN' union all select '12' union all select 'AA=='",
  '\'{"integer": "1"}\' union all select x\'41\'',
  "1 union all select 'a' union all select null",
  '1 union all select 1.5',
  'count(*) from kinds',
  'null',
  'numeric_ from kinds',
  'integer_ from kinds',
  'real_ from kinds',
  'blob_ from kinds',
  'text_ from kinds',
  'boolean_ from kinds',
  'date_ from kinds',
  'undeclared from kinds',
  'undeclared from kinds where 0',
  "1.5 union all select x'00'",
  'cast(7 as numeric), 7 / 2, 7 / 2.0, true, current_date > 1',
];
for (const sql of SQLITE_COLUMNS) {
  test(`SQLite returns the values that Python's sqlite3 returns, also in polars, for: ${sql}`, async () => {
    const printed = await call(`
import sqlite3
sql = ${JSON.stringify(`select ${sql}`)}
ours, native = datasource("sqlite"), sqlite3.connect("frames.db")
kinds = lambda rows: [[(type(cell).__name__, cell) for cell in row] for row in rows]
found, expected = kinds(ours.execute(sql).fetchall()), kinds(native.execute(sql).fetchall())
print(found == expected or (found, expected))
def read(connection):
    frame = polars.read_database(sql, connection)
    return frame.dtypes, frame.rows()
try:
    expected = read(native)
    print(not expected[1] or read(ours) == expected or (read(ours), expected))
except polars.exceptions.PolarsError:
    print([str(one) for one in read(ours)[0]] == ["Object"])`);
    assert.deepEqual(printed, ['True', 'True']);
  });
}

const COLUMNS: Readonly<Record<string, string>> = {
  'n::numeric / 8 from generate_series(1, 300) n union all select 1.123456':
    'Decimal(precision=38, scale=20)',
  'null::numeric': 'Decimal(precision=38, scale=0)',
  '1.25::numeric(10, 2)': 'Decimal(precision=38, scale=2)',
  "'NaN'::numeric": 'Float64',
  '12345678901234567890123456789012345678901.5': 'Float64',
  '1::int2': 'Int64',
  "timestamptz '2026-01-01 00:00+02'": "Datetime(time_unit='us', time_zone='UTC')",
  "date '0044-03-15 BC'": 'String',
  "date '2026-01-01'": 'Date',
  '\'{"a": 1}\'::jsonb': "Struct({'a': Int64})",
  'array[1, 2]': 'String',
  'gen_random_uuid()': 'String',
  "'\\x00'::bytea": 'Binary',
};

for (const [sql, type] of Object.entries(COLUMNS)) {
  test(`polars reads ${sql} of PostgreSQL as ${type}`, { skip: DATABASES.postgres.skip }, async () => {
    const code = `print(polars.read_database(${JSON.stringify(`select ${sql}`)}, datasource("postgres")).dtypes[0])`;
    assert.deepEqual(await call(code), [type]);
  });
}

test('polars gets every digit of a decimal, even if the decimal comes late in the result', {
  skip: DATABASES.postgres.skip,
}, async () => {
  const sql = 'select 1.5 from generate_series(1, 500) union all select 1.0625';
  assert.deepEqual(
    await call(`print(polars.read_database("${sql}", datasource("postgres")).to_series()[-1])`),
    ['1.0625'],
  );
});

test('to_sql writes numpy arrays as JSON, as it writes lists', async (t) => {
  const table = tableFor(t, 'sqlite');
  const printed = await call(`
import numpy
c = datasource("sqlite")
cells = [numpy.array([1, 2]), numpy.array([[0.5], [1.0]]), numpy.array([]), numpy.array(["é"]), [1]]
pandas.DataFrame({"a": pandas.Series(cells, dtype=object)}).to_sql("${table}", c, index=False)
print([json.loads(row[0]) for row in c.execute("select a from ${table}").fetchall()])`);
  assert.deepEqual(printed, ["[[1, 2], [[0.5], [1.0]], [], ['é'], [1]]"]);
});

test('pandas reads a datasource without a warning', { skip: DATABASES.postgres.skip }, async () => {
  assert.deepEqual(await call('print(len(pandas.read_sql("select 1", datasource("postgres"))))'), ['1']);
});

test('the error of to_sql for a read-only datasource says that to_sql cannot write there', async () => {
  const code = 'pandas.DataFrame({"a": [1]}).to_sql("t", datasource("duckdb"))';
  assert.match(
    (await call(code))[0] ?? '',
    /^NotSupportedError: to_sql cannot write into datasources of kind duckdb/,
  );
});

test('datasources also work with pandas and polars that a notebook imports later', async () => {
  const fresh = `
import subprocess, sys
code = '''
import sys
from troupe import datasource
made = datasource("x")
assert "pandas" not in sys.modules and "polars" not in sys.modules
import pandas.io.sql, polars.io.database._executor as executor
print("troupe" in executor.ARROW_DRIVER_REGISTRY, type(pandas.io.sql.pandasSQL_builder(made)).__module__)
'''
import troupe, os
print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(troupe.__file__))}).stdout)`;
  assert.deepEqual(await call(fresh), ['True troupe.writing']);
});
