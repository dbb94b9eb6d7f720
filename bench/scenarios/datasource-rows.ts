import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import type { Api } from '../api.ts';
import { atLeast, atMost, median } from '../measure.ts';
import { proportionalBytes } from '../processes.ts';
import { pythonPackages } from '../python-packages.ts';
import type { Scenario, Stage } from '../scenario.ts';
import { peakMemoryDuring } from '../watched-memory.ts';
import { decoded, expected } from '../wire.ts';

const MIB = 1024 * 1024;
const DRIVER = 'psycopg[binary]==3.3.9';
const SLUG = 'bench';
const USUAL_SERVER = 'postgresql://root@127.0.0.1:5432/test';

/** Ways to load the same rows; each is an expression in the kernel's Python. */
const WAYS = {
  psycopg: 'pandas.read_sql(QUERY, psycopg_connection)',
  'datasource()': 'pandas.read_sql(QUERY, troupe_connection)',
  polars: 'polars.read_database(QUERY, troupe_connection)',
  'mo.sql': 'mo.sql(QUERY, engine=troupe_connection, output=False)',
  'psycopg, fetchall': 'psycopg_connection.execute(QUERY).fetchall()',
  'datasource(), fetchall': 'troupe_connection.execute(QUERY).fetchall()',
} as const;
type Way = keyof typeof WAYS;

/** How fast rows come from a database into a notebook. */
export const datasourceRows: Scenario = {
  name: 'datasource-rows',
  title:
    'A table of six columns and 1,000,000 rows from PostgreSQL into pandas, polars and `mo.sql`: `datasource()` compared with psycopg in the same kernel',
  limitS: 300,
  async run(stage) {
    const rows = stage.count(1_000_000, 100_000);
    const postgres = process.env.BENCH_POSTGRES ?? USUAL_SERVER;
    const table = await tableOf(stage, postgres, rows);
    const packages = await pythonPackages(PYTHON, DRIVER);
    const { api, pid } = await stage.server({
      environment: { TROUPE_KERNEL_READ_PATHS: packages, TROUPE_HEARTBEAT_S: '300' },
    });
    const session = await openSession(api, postgres, preparation({ packages, postgres, table }));
    const idle = proportionalBytes([pid]);
    const perSecond = new Map<Way, number[]>(waysOf().map((way) => [way, []]));
    let most = 0;
    for (let round = -1; round < stage.count(5, 2); round++) {
      for (const way of waysOf()) {
        let seconds = 0;
        const peak = await peakMemoryDuring(pid, async () => {
          seconds = await secondsOf(api, session, WAYS[way], rows);
        });
        if (round >= 0) perSecond.get(way)?.push(rows / seconds);
        most = Math.max(most, peak);
      }
    }
    const rate = (way: Way) => median(perSecond.get(way) ?? []);
    return [
      ...waysOf().map((way) => atLeast(way, rate(way), '/s')),
      atLeast('read_sql, to psycopg', rate('datasource()') / rate('psycopg'), '×', 3),
      atLeast('polars, to read_sql of psycopg', rate('polars') / rate('psycopg'), '×', 3),
      atLeast('mo.sql, to read_sql of psycopg', rate('mo.sql') / rate('psycopg'), '×', 3),
      atLeast('fetchall, to psycopg', rate('datasource(), fetchall') / rate('psycopg, fetchall'), '×'),
      atMost('growth of the server, worst', (most - idle) / MIB, 'MiB', 64),
    ];
  },
};

const PYTHON =
  process.env.TROUPE_PYTHON ?? join(fileURLToPath(new URL('../../../', import.meta.url)), '.venv/bin/python');

function waysOf(): Way[] {
  return ['psycopg', 'datasource()', 'polars', 'mo.sql', 'psycopg, fetchall', 'datasource(), fetchall'];
}

/** Creates the table and returns its name. It is dropped after the scenario. */
async function tableOf(stage: Stage, postgres: string, rows: number): Promise<string> {
  const client = new Client({ connectionString: postgres });
  await client.connect();
  stage.after(() => client.end());
  const table = `troupe_bench_${randomBytes(6).toString('hex')}`;
  stage.after(() => client.query(`DROP TABLE IF EXISTS ${table}`));
  await client.query(`CREATE UNLOGGED TABLE ${table} AS SELECT n AS id, n % 9973 AS customer,
    (n * 0.37)::double precision AS amount, 'order number ' || n AS note, n % 3 = 0 AS paid,
    timestamp '2026-01-01' + n * interval '7 seconds' AS at FROM generate_series(1::bigint, ${rows}) n`);
  await client.query(`VACUUM ANALYZE ${table}`);
  return table;
}

async function openSession(api: Api, postgres: string, code: string): Promise<string> {
  await api.call('POST', '/api/v3/datasources', {
    slug: SLUG,
    connection: { kind: 'postgres', connection_string: postgres, schema: 'public' },
  });
  const { id } = await api.session([], { datasourceSlugs: [SLUG] });
  await printed(api, id, code);
  return id;
}

function preparation(given: {
  readonly packages: string;
  readonly postgres: string;
  readonly table: string;
}) {
  const [packages, postgres, query] = [
    given.packages,
    given.postgres,
    `SELECT id, customer, amount, note, paid, at FROM ${given.table}`,
  ].map((text) => JSON.stringify(text));
  return `
import builtins, gc, sys, time, warnings
sys.path.insert(0, ${packages})
import marimo as mo, pandas, polars, psycopg
from troupe import datasource
warnings.simplefilter("ignore")
given = {"mo": mo, "pandas": pandas, "polars": polars, "QUERY": ${query}, "psycopg_connection": psycopg.connect(${postgres}, autocommit=True),
         "troupe_connection": datasource("${SLUG}")}
def timed(expression):
    gc.collect()
    started = time.perf_counter()
    result = eval(expression, given)
    took = time.perf_counter() - started
    print(len(result), took)
builtins.timed = timed
`;
}

async function secondsOf(api: Api, session: string, expression: string, rows: number): Promise<number> {
  const [count, seconds] = (await printed(api, session, `timed(${JSON.stringify(expression)})`)).split(' ');
  if (Number(count) !== rows) throw new Error(`${expression} gave ${count} rows.`);
  return Number(seconds);
}

async function printed(api: Api, session: string, code: string): Promise<string> {
  const wire = await api.wire();
  const answer = expected(await wire.send(api.codeBytes(session, code)), 200);
  wire.close();
  const { success, stdout, errors } = decoded<{ success: boolean; stdout: string; errors: unknown }>(answer);
  if (!success) throw new Error(JSON.stringify(errors));
  return stdout.trim();
}
