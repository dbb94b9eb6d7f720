/** Frames that are made of packed columns: every value is the one that rows give. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { Client } from 'pg';
import { postgresConnection } from '#test/datasource/connections.ts';
import { openNotebook } from '#test/support/notebook-fixture.ts';
import { eventually } from '#test/support/processes.ts';
import { startServer } from '#test/support/server-fixture.ts';
import { postgresServer } from '#test/support/stand-ins/databases.ts';

const { skip } = postgresServer;
const server = await startServer(test);
await server.request('POST', '/api/v3/datasources', {
  body: { slug: 'pg', connection: postgresConnection() },
});
const notebook = await openNotebook(server, {}, { datasourceSlugs: ['pg'] });

const PREPARATION = `
import datetime, decimal, sys, uuid, warnings
import marimo as mo, pandas, polars
from marimo._sql.engines.dbapi import DBAPIEngine
from marimo._sql.utils import convert_to_output
from troupe import dbapi, datasource, frames
c = datasource("pg")

class RowsOnly(dbapi.Connection):
    """A connection whose rows never come as columns."""
    def cursor(self):
        cursor = super().cursor()
        cursor.fetch_columns = lambda: None
        return cursor
RowsOnly.__module__ = dbapi.Connection.__module__  # polars knows a driver by the name of its module

rows_only = RowsOnly("pg")
came = []  # how many rows came as columns
fetch_columns = dbapi.Cursor.fetch_columns
def counted(self):
    columns = fetch_columns(self)
    came.append(None if columns is None else columns.count)
    return columns
dbapi.Cursor.fetch_columns = counted

def cells(frame):
    """Each cell with its type, so that 1 and 1.0 differ and NaN equals itself."""
    columns = [frame[name] for name in frame.columns] if isinstance(frame, polars.DataFrame) else [frame.iloc[:, at] for at in range(frame.shape[1])]
    return [[(type(value).__name__, repr(value)) for value in column.to_list()] for column in columns]

def compare(query, parameters=()):
    """Prints how three libraries differ between both ways; nothing when all frames are equal."""
    def marimo(connection, wanted):
        class Engine(mo._sql.get_engines.SUPPORTED_ENGINES[-2] if connection is c else DBAPIEngine):
            def sql_output_format(self):
                return wanted
        return Engine(connection).execute(query, parameters)
    ways = {
        "pandas.read_sql": lambda one: pandas.read_sql(query, one, params=list(parameters)),
        "pandas.read_sql without coerce_float": lambda one: pandas.read_sql(query, one, params=list(parameters), coerce_float=False),
        "polars": lambda one: polars.read_database(query, one, execute_options={"parameters": list(parameters)}),
        "mo.sql of polars": lambda one: marimo(one, "polars"),
        "mo.sql of pandas": lambda one: marimo(one, "pandas"),
    }
    for name, way in ways.items():
        results = []
        for connection in (rows_only, c):
            try:
                results.append(way(connection))
            except BaseException as error:  # polars panics at some values
                results.append(f"{type(error).__name__}: {error}")
        one, other = results
        if isinstance(one, str) or isinstance(other, str):
            if str(one) != str(other):
                print(name, "of", query, "rows:", one, "columns:", other)
            continue
        types = [list(map(str, frame.dtypes)) for frame in results]
        if types[0] != types[1] or list(one.columns) != list(other.columns):
            print(name, "of", query, "types", *types)
        elif cells(one) != cells(other):
            print(name, "of", query, "cells", cells(one), cells(other))
        elif isinstance(one, pandas.DataFrame):
            pandas.testing.assert_frame_equal(one, other, check_index_type="equiv", check_freq=True)
            print(end="" if type(one.index) is type(other.index) else f"{name} of {query}: index {one.index} {other.index}\\n")
`;

/** The lines that code printed, or its error. */
async function call(code: string): Promise<string[]> {
  const answer = await server.request('POST', '/api/cee/kernel/execute', {
    body: { code: PREPARATION + code },
    headers: { 'service-session-id': notebook.id },
  });
  const { stdout, errors } = Object(answer.body);
  if (errors[0] !== undefined)
    return [`${errors[0].type}: ${errors[0].message}`, ...String(stdout).split('\n')];
  return String(stdout).trimEnd().split('\n');
}

/** Values of each type: usual ones, the ends of the range of Python, and values that it lacks. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  boolean: ['true', 'false'],
  smallint: ['1', "'-32768'"],
  integer: ['0', "'-2147483648'"],
  bigint: [
    '9007199254740993',
    "'-9223372036854775808'",
    '9223372036854775807',
    '999999999999999',
    '-1',
    '4294967296',
    '-4294967297',
  ],
  oid: ['4294967295'],
  real: ['0.1', '16777217', '1e-40', "'NaN'", "'-Infinity'"],
  'double precision': [
    '0.1',
    '0.30000000000000004',
    '1e300',
    '5e-324',
    '-0.0',
    '1.7976931348623157e308',
    '123456789012345',
    '-1234567.125',
    '1e22',
    '123456789.123456789',
  ],
  float8: ["'NaN'", "'Infinity'", "'-Infinity'", '1.5'],
  numeric: ['1.10', '123456789012345678901234567890.5', '-0.000001'],
  'numeric(5,1)': ["'NaN'", '1'],
  money: ['5'],
  text: ["'é'", "''", `'"\\'`, "E'\\x01\\n'", "repeat('ü', 40)", "'\u{1F600}'"],
  varchar: ["'x'"],
  'char(3)': ["'x'"],
  '"char"': ["'x'"],
  name: ["'x'"],
  bytea: ["'\\x00ff'", "''"],
  date: ["'2026-02-28'", "'2024-02-29'", "'1969-12-31'", "'0001-01-01'", "'9999-12-31'", "'1900-03-01'"],
  timestamp: [
    "'2026-01-01 00:00:00'",
    "'1969-12-31 23:59:59.999999'",
    "'0001-01-01'",
    "'9999-12-31 23:59:59.999999'",
    "'2026-01-01 12:34:56.5'",
  ],
  timestamptz: ["'2026-01-01 00:00:00+00'", "'2026-07-01 00:00:00.25+02'", "'9999-12-31 23:59:59.999999+00'"],
  time: ["'12:34:56.5'", "'24:00:00'"],
  timetz: ["'12:34:56+02'"],
  interval: ["'1 mon 2 days 00:00:03'", "'-1 day'"],
  uuid: ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
  json: [`'{"a": [1, null]}'`, "'1'"],
  jsonb: [`'{"a": 9007199254740993}'`],
  'int[]': ["'{1,2,NULL}'"],
  inet: ["'1.2.3.4/8'"],
  'bit(3)': ["B'101'"],
  int4range: ["'[1,5)'"],
  point: ["'(1,2)'"],
  tsvector: ["'a b'"],
  xml: ["'<a/>'"],
};
/** Values of which one decides about its whole column. */
const EXCEPTIONS: Readonly<Record<string, readonly string[]>> = {
  date: ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'20260-01-02'"],
  timestamp: ["'infinity'", "'0044-03-15 12:00:00 BC'", "'20260-01-02 00:00:00'"],
  timestamptz: ["'infinity'", "'0044-03-15 12:00:00+00 BC'"],
};

/** These rows take more than one batch. */
const ROWS = 2000;

test('a column of each type, with and without nulls, is the same in a frame of columns as of rows', {
  skip,
}, async () => {
  const single = Object.entries(VALUES).map(
    ([type, values]) => `values ${[...values, 'null'].map((value) => `(${value}::${type})`).join(', ')}`,
  );
  const row = (at: number) =>
    `select ${Object.entries(VALUES)
      .map(([type, values], index) => `${values[at] ?? 'null'}::${type} as v${index}`)
      .join(', ')}`;
  const [none, first, second] = [row(100), row(0), row(1)];
  const whole = [
    `${first} where false`,
    none,
    first,
    `${first} union all ${none}`,
    `${none} union all ${first}`,
    `${first} union all ${second} union all ${none}`,
  ].map((query) => query.replaceAll(' union all ', '\nunion all '));
  const queries = [...single, ...whole];
  const printed = await call(`
for query in ${JSON.stringify(queries)}:
    compare(query)
print(len(came), None in came)`);
  assert.deepEqual(printed, [`${queries.length * 5} False`]);
});

test('a column with one date that Python lacks, in any batch, is the same in a frame of columns as of rows', {
  skip,
}, async () => {
  const queries = Object.entries(EXCEPTIONS).flatMap(([type, values]) =>
    values.flatMap((value, index) =>
      (index === 0 ? [1, 1000, ROWS] : [1000]).map(
        (at) =>
          `select case when n = ${at} then ${value}::${type} when n % 7 = 0 then null else '2026-01-01'::${type} + n * ${type === 'date' ? '1' : "interval '1 minute'"} end as v, n from generate_series(1, ${ROWS}) n`,
      ),
    ),
  );
  const printed = await call(`
for query in ${JSON.stringify(queries)}:
    compare(query)
print(len(came), set(came))`);
  assert.deepEqual(printed, [`${queries.length * 5} {${ROWS}}`]);
});

test('times of other zones are the same in a frame of columns as of rows', { skip }, async () => {
  const queries = ['Asia/Kolkata', 'Europe/Berlin', 'Europe/London'].map(
    (zone) =>
      `select set_config('timezone', '${zone}', false) as zone, timestamptz '2026-01-01 00:00+00' + n * interval '1 day' as v from generate_series(1, ${ROWS}) n`,
  );
  const printed = await call(`
for query in ${JSON.stringify(queries)}:
    compare(query)
print(len(came), set(came))`);
  assert.deepEqual(printed, [`${queries.length * 5} {${ROWS}}`]);
});

test('names of columns that repeat, parameters and an index are the same in a frame of columns as of rows', {
  skip,
}, async () => {
  const printed = await call(`
compare("select 1 as a, 2 as b, 'x' as a")
compare("select n, n + ? as m from generate_series(1, 3000) n", (5,))
frame = pandas.read_sql("select n, n + 1 as m from generate_series(1, 10) n", c, index_col="n")
pandas.testing.assert_frame_equal(frame, pandas.read_sql("select n, n + 1 as m from generate_series(1, 10) n", rows_only, index_col="n"))
frame.iloc[0, 0] = 7
parts = list(pandas.read_sql("select n from generate_series(1, 10) n", c, chunksize=4))
print([len(part) for part in parts], pandas.read_sql("select '2026-01-01' as d", c, parse_dates=["d"])["d"].dtype, frame.iloc[0, 0])`);
  assert.deepEqual(printed, ['[4, 4, 2] datetime64[us] 7']);
});

test('rows that were fetched are not fetched again as columns, and the cursor reads on', {
  skip,
}, async () => {
  const printed = await call(`
cursor = c.execute("select n from generate_series(1, 3000) n")
print(cursor.fetchone(), cursor.fetch_columns(), len(cursor.fetchall()))
cursor = c.execute("select n from generate_series(1, 3000) n")
print(cursor.fetch_columns().count, cursor.fetchall(), cursor.fetch_columns())
cursor.execute("select 1")
print(cursor.fetchall())`);
  assert.deepEqual(printed, ['(1,) None 2999', '3000 [] None', '[(1,)]']);
});

test('an environment without pyarrow gets frames of rows', { skip }, async () => {
  const printed = await call(`
can_read, dbapi._can_read_columns = dbapi._can_read_columns, lambda: False
try:
    print(pandas.read_sql("select 1 as a", c).to_dict(), mo.sql("select 2 as a", engine=c, output=False).to_dicts(), came)
finally:
    dbapi._can_read_columns = can_read`);
  assert.deepEqual(printed, ["{'a': {0: 1}} [{'a': 2}] [None, None]"]);
});

test('a statement that fails in the middle raises the message of the database, and the next one works', {
  skip,
}, async () => {
  const printed = await call(`
for read in (lambda query: pandas.read_sql(query, c), lambda query: polars.read_database(query, c), lambda query: mo.sql(query, engine=c, output=False)):
    try:
        read("select 1 / (n - 40000) as a from generate_series(1, 50000) n")
    except Exception as error:
        print("division by zero" in str(error), end=" ")
    print(len(read("select n from generate_series(1, 50000) n")))`);
  assert.deepEqual(printed, ['True 50000', 'True 50000', 'True 50000']);
});

test('a database that ends the connection in the middle gives a sentence', { skip }, async () => {
  const printed = await call(`
try:
    pandas.read_sql("select n, case when n = 40000 then pg_terminate_backend(pg_backend_pid()) end as e from generate_series(1, 80000) n", c)
except Exception as error:
    print(type(error).__name__, error)
print(len(pandas.read_sql("select n from generate_series(1, 5) n", c)))`);
  assert.match(printed[0] ?? '', /^\w*Error .*(closed|ended|reach|terminat)/);
  assert.equal(printed[1], '5');
});

test('a value of 15 MB comes as it is, and a row of more than 16 MB is refused', { skip }, async () => {
  const printed = await call(`
found = pandas.read_sql("select repeat('é', 7500000) as v, n from generate_series(1, 3) n", c)
print(found["v"].map(lambda text: text == "é" * 7500000).tolist(), found["n"].tolist())
try:
    pandas.read_sql("select repeat('x', 17 * 1024 * 1024) as v from generate_series(1, 3) n", c)
except Exception as error:
    print(type(error).__name__)`);
  assert.equal(printed[0], '[True, True, True] [1, 2, 3]');
  assert.match(printed[1] ?? '', /Error$/);
});

test('cancelling a run ends its statement in the database while a frame is read', { skip }, async (t) => {
  const watcher = new Client({ connectionString: postgresConnection().connection_string });
  await watcher.connect();
  t.after(() => watcher.end());
  const count = async () => {
    const { rows } = await watcher.query(
      "select count(*)::int n from pg_stat_activity where state = 'active' and query like '%frame to be cancelled%' and pid <> pg_backend_pid()",
    );
    return rows[0].n;
  };
  const opened = await openNotebook(
    server,
    {
      slow: `from troupe import datasource
import pandas
query = "select n, case when n > 5000 then pg_sleep(600) is null end as a from generate_series(1, 9000) n /* frame to be cancelled */"
pandas.read_sql(query, datasource("pg"))`,
    },
    { datasourceSlugs: ['pg'] },
  );
  const runId = await opened.submit(['slow']);
  await eventually('the statement runs', async () => (await count()) > 0);
  await server.client.runs.cancel(runId);
  assert.equal((await server.client.waitForRun(runId)).status, 'cancelled');
  await eventually('the statement has ended', async () => (await count()) === 0);
});
