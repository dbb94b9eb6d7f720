/** Datasources as agents ask them: what there is, its tables, and rows of statements that only read. */
import { AppError } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import type { Datasources } from './datasources.ts';
import { DatasourceFailure } from './failure.ts';
import type { Queries } from './queries.ts';
import type { Cell, Column } from './rows.ts';

interface Refused {
  readonly refused: string;
}

interface Table {
  readonly schema: string | null;
  readonly name: string;
  readonly columns: { readonly name: string; readonly type: string }[];
}

interface Rows {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  readonly isCut: boolean;
}

const MOST_COLUMNS = 5_000;
const SYSTEM_SCHEMAS = [
  'information_schema',
  'INFORMATION_SCHEMA',
  'pg_catalog',
  'sys',
  'mysql',
  'system',
  'performance_schema',
];
const COLUMNS_OF: Readonly<Record<string, string>> = {
  sqlite:
    "SELECT NULL, m.name, p.name, p.type FROM sqlite_master m JOIN pragma_table_info(m.name) p WHERE m.type IN ('table', 'view') ORDER BY m.name, p.cid",
};
const STANDARD_COLUMNS =
  'SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns ' +
  `WHERE table_schema NOT IN (${SYSTEM_SCHEMAS.map((name) => `'${name}'`).join(', ')}) ` +
  'ORDER BY table_schema, table_name, ordinal_position';

export class QueriesForAgents {
  readonly #datasources: Datasources;
  readonly #queries: Queries;

  constructor(datasources: Datasources, queries: Queries) {
    this.#datasources = datasources;
    this.#queries = queries;
  }

  async list(caller: Principal, slugs: readonly string[]) {
    if (!maySee(caller)) return [];
    return slugs.flatMap((slug) => {
      try {
        return [this.#datasources.get(caller, slug)];
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return []; // gone, or not theirs to know of
        throw error;
      }
    });
  }

  async describe(caller: Principal, slug: string, signal: AbortSignal): Promise<readonly Table[] | Refused> {
    const { kind } = this.#datasources.get(caller, slug);
    const sql = COLUMNS_OF[kind] ?? STANDARD_COLUMNS;
    const answer = await this.query(caller, slug, { sql, maxRows: MOST_COLUMNS, signal });
    if ('refused' in answer) return answer;
    const tables = new Map<string, Table>();
    for (const [schema = null, name, column, type] of answer.rows) {
      const key = `${schema}.${name}`;
      const table = tables.get(key) ?? {
        schema: schema === null ? null : String(schema),
        name: String(name),
        columns: [],
      };
      tables.set(key, table);
      table.columns.push({ name: String(column), type: String(type) });
    }
    return [...tables.values()];
  }

  async query(
    caller: Principal,
    slug: string,
    {
      sql,
      maxRows,
      signal,
    }: { readonly sql: string; readonly maxRows: number; readonly signal: AbortSignal },
  ): Promise<Rows | Refused> {
    if (!maySee(caller))
      return { refused: 'The access token of this prompt lacks the scope datasource:read.' };
    const rows: (readonly Cell[])[] = [];
    let columns: readonly Column[] = [];
    try {
      // One more than is wanted is the sign that there are others.
      const options = { signal, readOnly: true, maxRows: maxRows + 1 };
      for await (const batch of this.#queries.run(caller, slug, sql, [], options)) {
        columns = batch.columns;
        rows.push(...batch.rows);
      }
    } catch (error) {
      if (error instanceof DatasourceFailure) return { refused: error.detail ?? error.message };
      throw error;
    }
    return { columns, rows: rows.slice(0, maxRows), isCut: rows.length > maxRows };
  }
}

function maySee({ scopes }: Principal): boolean {
  return scopes.includes('datasource:read');
}
