/** Datasources for agents: which there are, their tables, and the rows of statements that only read. */
import { AppError } from '#src/core/errors.ts';
import type { Principal } from '#src/core/principal.ts';
import type { TraceContext } from '#src/tracing/trace-context.ts';
import type { Datasources } from '../datasources.ts';
import { DatasourceFailure } from '../failure.ts';
import type { Cell, Column } from '../rows.ts';
import type { Description, Descriptions, Table } from './descriptions.ts';
import type { Queries } from './queries.ts';

interface Refused {
  readonly refused: string;
}

/** A call of an agent's tool. */
interface ToolRequest {
  readonly signal: AbortSignal;
  /** The trace that the statement belongs to. */
  readonly trace: TraceContext | undefined;
}

interface Rows {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  readonly isCut: boolean;
}

const LACKS_SCOPE = 'The access token of this prompt lacks the scope datasource:read.';
const MAX_COLUMNS = 5_000;
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

/** Runs the datasource tools of agents, with the rights of the caller who sent the prompt. */
export class QueriesForAgents {
  readonly #datasources: Datasources;
  readonly #queries: Queries;
  readonly #descriptions: Descriptions;

  constructor(datasources: Datasources, queries: Queries, descriptions: Descriptions) {
    this.#datasources = datasources;
    this.#queries = queries;
    this.#descriptions = descriptions;
  }

  /** Returns the datasources among `slugs` that the caller may read. */
  async list(caller: Principal, slugs: readonly string[]) {
    if (!hasScope(caller)) return [];
    return slugs.flatMap((slug) => {
      try {
        return [this.#datasources.get(caller, slug)];
      } catch (error) {
        if (error instanceof AppError && error.code === 'not_found') return []; // deleted, or not shared with the caller
        throw error;
      }
    });
  }

  /**
   * Returns the tables of a datasource. Those of a remote one may be some minutes old, unless `refresh` is set. Throws
   * `not_found`; returns `refused`, with a text for the model, when the scope is missing or the database fails.
   */
  async describe(
    caller: Principal,
    slug: string,
    { refresh, ...request }: ToolRequest & { readonly refresh: boolean },
  ): Promise<Description | Refused> {
    if (!hasScope(caller)) return { refused: LACKS_SCOPE };
    const metadata = this.#datasources.get(caller, slug);
    const known = refresh ? undefined : this.#descriptions.get(caller.workspaceId, metadata);
    if (known !== undefined) return known;
    const sql = COLUMNS_OF[metadata.kind] ?? STANDARD_COLUMNS;
    const answer = await this.query(caller, slug, { ...request, sql, maxRows: MAX_COLUMNS });
    if ('refused' in answer) return answer;
    const description = { tables: tablesOf(answer.rows), isCut: answer.isCut };
    // Embedded databases are not cached: they are read quickly, and notebooks change their files at any time.
    if (!metadata.embedded) this.#descriptions.keep(caller.workspaceId, metadata, description);
    return description;
  }

  /**
   * Runs a statement that must not write, and returns at most `maxRows` rows. Throws `not_found`; returns `refused`, with
   * a text for the model, when the scope is missing or the statement fails.
   */
  async query(
    caller: Principal,
    slug: string,
    { sql, maxRows, signal, trace }: ToolRequest & { readonly sql: string; readonly maxRows: number },
  ): Promise<Rows | Refused> {
    if (!hasScope(caller)) return { refused: LACKS_SCOPE };
    const rows: (readonly Cell[])[] = [];
    let columns: readonly Column[] = [];
    try {
      // One row more than wanted shows whether the result was cut.
      const options = { signal, readOnly: true, maxRows: maxRows + 1 };
      const origin = { by: 'agent', sessionId: null, tokenId: caller.tokenId } as const;
      const reader = { ...caller, origin, trace };
      for await (const batch of this.#queries.run(reader, slug, sql, [], options)) {
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

function hasScope({ scopes }: Principal): boolean {
  return scopes.includes('datasource:read');
}

/** Groups rows of schema, table, column and type by table. */
function tablesOf(rows: Rows['rows']): Table[] {
  const tables = new Map<
    string,
    { schema: string | null; name: string; columns: Table['columns'][number][] }
  >();
  for (const [schema = null, name, column, type] of rows) {
    const key = `${schema}.${name}`;
    const shown = schema === null ? null : String(schema);
    const table = tables.get(key) ?? { schema: shown, name: String(name), columns: [] };
    tables.set(key, table);
    table.columns.push({ name: String(column), type: String(type) });
  }
  return [...tables.values()];
}
