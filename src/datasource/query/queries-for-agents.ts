/**
 * Datasources for agents: the list of datasources, their tables, and the rows of statements that
 * only read.
 */

import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { WorkspaceId } from '#src/base/ids.ts';
import { compactText } from '#src/base/text/compact-text.ts';
import { cutText } from '#src/base/text/cut-text.ts';
import type { TraceContext } from '#src/base/tracing/trace-context.ts';
import type { Datasources } from '../datasources.ts';
import { DatasourceFailure } from '../failure.ts';
import type { ResultColumn, RowValue } from '../rows.ts';
import type { DescribedTable, Description, Descriptions } from './descriptions.ts';
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

interface Rows<Value> {
  readonly columns: readonly ResultColumn[];
  readonly rows: readonly (readonly Value[])[];
  /** Whether there are more rows. */
  readonly isCut: boolean;
}

interface RowRequest<Value> extends ToolRequest {
  readonly sql: string;
  readonly maxRows: number;
  /** Returns the stored form of a cell. */
  readonly shorten: (cell: RowValue) => Value;
}

const LACKS_SCOPE = 'The access token of this prompt lacks the scope datasource:read.';
const MAX_COLUMNS = 5_000;
/** Most characters of a result that are stored. A model is shown far fewer. */
export const MAX_KEPT_CHARS = 1024 * 1024;
/** Most bytes of cells that are read for one result, stored or not. */
export const MAX_READ_BYTES = 64 * 1024 * 1024;
/** Longer names of tables, columns and types are cut. */
const MAX_NAME_CHARS = 1_000;
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
  readonly #datasources: Pick<Datasources, 'get' | 'isKeptFrom'>;
  readonly #queries: Pick<Queries, 'run'>;
  readonly #descriptions: Descriptions;

  constructor(
    datasources: Pick<Datasources, 'get' | 'isKeptFrom'>,
    queries: Pick<Queries, 'run'>,
    descriptions: Descriptions,
  ) {
    this.#datasources = datasources;
    this.#queries = queries;
    this.#descriptions = descriptions;
  }

  /** Returns whether this datasource exists but the user may not read it now. */
  isKeptFrom(workspaceId: WorkspaceId, userId: string, slug: string): boolean {
    return this.#datasources.isKeptFrom(workspaceId, userId, slug);
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
   * Returns the tables of a datasource. For a remote datasource they may be some minutes old, unless `refresh` is
   * set. Throws `not_found`. Returns `refused`, with a text for the model, when the caller lacks the scope or the
   * database fails.
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
    const answer = await this.query(caller, slug, { ...request, sql, maxRows: MAX_COLUMNS, shorten: nameOf });
    if ('refused' in answer) return answer;
    const description = { tables: tablesOf(answer.rows), isCut: answer.isCut };
    // Embedded databases are not cached: they are read quickly, and notebooks change their files at any time.
    if (!metadata.embedded) this.#descriptions.keep(caller.workspaceId, metadata, description);
    return description;
  }

  /**
   * Runs a statement that must not write, and returns at most `maxRows` rows of shortened cells. Returns fewer rows
   * when their cells would have more than `MAX_KEPT_CHARS` together, or when more than `MAX_READ_BYTES` of cells were
   * read. Throws `not_found`. Returns `refused`, with a text for the model, when the caller lacks the scope or the
   * statement fails.
   */
  async query<Value extends string | null>(
    caller: Principal,
    slug: string,
    { sql, maxRows, shorten, signal, trace }: RowRequest<Value>,
  ): Promise<Rows<Value> | Refused> {
    if (!hasScope(caller)) return { refused: LACKS_SCOPE };
    const budget = new ReadBudget();
    const rows: Value[][] = [];
    let columns: readonly ResultColumn[] = [];
    let isCut = false;
    try {
      // One more row than requested shows whether the result was cut.
      const options = { signal, readOnly: true, maxRows: maxRows + 1 };
      const origin = { by: 'agent', sessionId: null, tokenId: caller.tokenId } as const;
      const reader = { ...caller, origin, trace };
      for await (const batch of this.#queries.run(reader, slug, sql, [], options)) {
        columns = batch.columns.map(({ name, type }) => ({ name, type }));
        for (const row of batch.rows) {
          isCut = rows.length === maxRows;
          if (isCut) break; // the outer loop continues, so the statement ends by itself and its connection can be reused
          // Cells are shortened at once: a row may have 16 MiB, and only its stored part may stay in memory.
          const kept = budget.read(row) ? row.map((cell) => detached(cell, shorten(cell))) : undefined;
          if (kept === undefined || !budget.keep(kept)) return { columns, rows, isCut: true };
          rows.push(kept);
        }
      }
    } catch (error) {
      if (error instanceof DatasourceFailure) return { refused: error.detail ?? error.message };
      throw error;
    }
    return { columns, rows, isCut };
  }
}

/** Counts the bytes read and the characters stored for one result. */
class ReadBudget {
  #readBytes = 0;
  #keptChars = 0;

  /** Counts the row as read. Returns false, and counts nothing, when no further row may be read. */
  read(row: readonly RowValue[]): boolean {
    if (this.#readBytes >= MAX_READ_BYTES) return false;
    for (const cell of row) this.#readBytes += sizeOf(cell);
    return true;
  }

  /** Counts the stored part of a row. Returns false when it exceeds the limit. */
  keep(row: readonly (string | null)[]): boolean {
    for (const text of row) this.#keptChars += text?.length ?? 0;
    return this.#keptChars <= MAX_KEPT_CHARS;
  }
}

/** Returns a copy of `kept` that does not keep the whole cell in memory. */
function detached<Value extends string | null>(cell: RowValue, kept: Value): Value {
  if (kept === null || typeof cell !== 'string' || kept.length >= cell.length) return kept;
  return compactText(kept) as Value;
}

/** Returns about how many bytes a cell takes. */
function sizeOf(cell: RowValue): number {
  if (typeof cell === 'string') return cell.length;
  return cell instanceof Uint8Array ? cell.byteLength : 8;
}

function hasScope({ scopes }: Principal): boolean {
  return scopes.includes('datasource:read');
}

/** Groups rows of schema, table, column and type by table. */
function tablesOf(rows: Rows<string | null>['rows']): DescribedTable[] {
  const tables = new Map<
    string,
    { schema: string | null; name: string; columns: DescribedTable['columns'][number][] }
  >();
  for (const [schema = null, name, column, type] of rows) {
    const key = `${schema}.${name}`;
    const table = tables.get(key) ?? { schema, name: String(name), columns: [] };
    tables.set(key, table);
    table.columns.push({ name: String(column), type: String(type) });
  }
  return [...tables.values()];
}

function nameOf(cell: RowValue): string | null {
  return cell === null ? null : cutText(String(cell), 0, MAX_NAME_CHARS);
}
