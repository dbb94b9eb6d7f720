import type { Api } from '../api.ts';
import type { UnitOfWork } from '../counting/unit.ts';
import { type Measure, spread } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { decoded, expected, type Wire } from '../wire.ts';

/** The databases, and a statement for all of them, which changes nothing. */
const KINDS = ['sqlite', 'duckdb'] as const;
type Kind = (typeof KINDS)[number];
const QUERY = 'select n, name from numbers where n < 10 order by n';

/** Each answer then comes in one piece, however long it takes. */
const ENVIRONMENT = { TROUPE_HEARTBEAT_S: '300' };

/** Makes the databases in the folder of the workspace's files, which is where the kernel works. */
const PREPARATION = `
import duckdb, sqlite3
rows = [(n, f"number {n}") for n in range(1000)]
for database in (sqlite3.connect("bench.sqlite"), duckdb.connect("bench.duckdb")):
    database.execute("create table numbers (n integer, name varchar)")
    database.executemany("insert into numbers values (?, ?)", rows)
    database.commit()
    database.close()
`;

const TIMING = `
import builtins, time
from troupe import datasource
def timed(slug, times):
    connection = datasource(slug)
    took = []
    for _ in range(times):
        started = time.perf_counter()
        rows = connection.execute(${JSON.stringify(QUERY)}).fetchall()
        took.append((time.perf_counter() - started) * 1000)
        assert len(rows) == 10
    print(*took)
builtins.timed = timed
`;

const unit: UnitOfWork = {
  name: 'query of a SQLite file',
  count: 400,
  environment: ENVIRONMENT,
  async prepare({ api }) {
    const wire = await api.wire();
    const id = await prepareQueries(api, wire);
    return { perform: (count) => timed(api, wire, id, 'sqlite', count) };
  },
};

/** How fast a notebook gets an answer from a database that is a file of its workspace. */
export const embeddedQueries: Scenario = {
  name: 'embedded-queries',
  title:
    'A query of 10 rows in a SQLite and in a DuckDB file, timed in the notebook: the first one, which starts the process that reads the file, and those after it',
  limitS: 120,
  unit,
  async run(stage) {
    const { api } = await stage.server({ environment: ENVIRONMENT });
    const measures: Measure[] = [];
    const wire = await api.wire();
    const id = await prepareQueries(api, wire);
    for (const kind of KINDS) {
      const [first, ...others] = await timed(api, wire, id, kind, 1 + stage.count(500, 50));
      measures.push(
        spread(`${kind}, first`, [first!]),
        spread(`${kind}, after that`, others.slice(others.length / 10)),
      );
    }
    wire.close();
    return measures;
  },
};

/** Makes the databases. Returns the session whose notebook may query them. */
async function prepareQueries(api: Api, wire: Wire): Promise<string> {
  for (const kind of KINDS) {
    await api.call('POST', '/api/v3/datasources', {
      slug: kind,
      connection: { kind, path: `bench.${kind}` },
    });
  }
  const { id } = await api.session([], { datasourceSlugs: KINDS });
  await printed(api, wire, id, PREPARATION);
  await printed(api, wire, id, TIMING);
  return id;
}

async function timed(api: Api, wire: Wire, session: string, kind: Kind, times: number): Promise<number[]> {
  const text = await printed(api, wire, session, `timed("${kind}", ${times})`);
  return text.split(' ').map(Number);
}

async function printed(api: Api, wire: Wire, session: string, code: string): Promise<string> {
  const answer = expected(await wire.send(api.codeBytes(session, code)), 200);
  const { success, stdout, errors } = decoded<{ success: boolean; stdout: string; errors: unknown }>(answer);
  if (!success) throw new Error(JSON.stringify(errors));
  return stdout.trim();
}
