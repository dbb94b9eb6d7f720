/** SQLite over files of a workspace. */
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import Database from 'libsql';
import { codeOf, DatasourceFailure } from '../failure.ts';
import { statementStart } from '../query/statement-start.ts';
import type { Parameter } from '../rows.ts';
import { type Cell, type Column, type ColumnType, integerCell } from '../rows.ts';
import {
  type Engine,
  type EngineMode,
  type EngineRequest,
  type RunningQuery,
  SEVERAL,
  StatementError,
} from './engine-messages.ts';
import { nextPortion } from './row-portions.ts';
import { hasSecondStatement } from './sqlite-statements.ts';
import { locate, openFiles, refuseOpenOutside } from './workspace-path.ts';

const BUSY_MS = 5000;

/** How the file is opened. None of it makes a file; a probe takes no locks and makes no journal either. */
const ACCESS: Readonly<Record<EngineMode, string>> = {
  probe: 'mode=ro&immutable=1',
  read: 'mode=ro',
  write: 'mode=rw',
};

export async function openSqlite(request: Extract<EngineRequest, { type: 'open' }>): Promise<Engine> {
  const known = new Set(openFiles().map(([, path]) => path));
  const path = locate(request.filesDirectory, request.path, 'file');
  const database = opened(`${pathToFileURL(path)}?${ACCESS[request.mode]}`);
  try {
    database.prepare('SELECT name FROM sqlite_master LIMIT 1').all();
  } catch (error) {
    throw new DatasourceFailure(codeOf(error) === 'SQLITE_BUSY' ? 'file_locked' : 'file_unusable');
  }
  refuseOpenOutside(dirname(path), known);
  return {
    query: async (sql, parameters) => {
      if (hasSecondStatement(sql)) throw new StatementError(SEVERAL);
      refuseOtherFiles(sql);
      return statement(database, sql, parameters);
    },
  };
}

function opened(url: string): Database.Database {
  try {
    return new Database(url, { timeout: BUSY_MS });
  } catch {
    throw new DatasourceFailure('file_unusable');
  }
}

const READABLE_PRAGMAS = new Set(
  (
    'TABLE_INFO TABLE_XINFO TABLE_LIST INDEX_LIST INDEX_INFO INDEX_XINFO FOREIGN_KEY_LIST COLLATION_LIST ' +
    'FUNCTION_LIST PRAGMA_LIST ENCODING USER_VERSION SCHEMA_VERSION APPLICATION_ID PAGE_COUNT PAGE_SIZE'
  ).split(' '),
);

function isReadable({ word, rest }: { readonly word: string; readonly rest: string }): boolean {
  return READABLE_PRAGMAS.has(word) && !rest.includes('=');
}

/** Statements that open or write other files. They stand alone, so their first word gives them away. */
function refuseOtherFiles(sql: string): void {
  let { word, rest } = statementStart(sql);
  while (['EXPLAIN', 'QUERY', 'PLAN'].includes(word)) ({ word, rest } = statementStart(rest));
  const pragma = statementStart(rest);
  const isRefused =
    ['ATTACH', 'DETACH', 'VACUUM'].includes(word) || (word === 'PRAGMA' && !isReadable(pragma));
  if (isRefused) throw new StatementError(`${word} is not allowed here.`);
}

function statement(database: Database.Database, sql: string, parameters: readonly Parameter[]): RunningQuery {
  return explained(() => {
    const prepared = database.prepare<unknown[]>(sql);
    prepared.safeIntegers(true);
    const values = parameters.map((value) => (typeof value === 'boolean' ? Number(value) : value));
    if (!prepared.reader) {
      prepared.run(...values);
      return { columns: null, next: async () => [] };
    }
    const columns = prepared.columns().map(columnOf);
    const rows = cellRows(prepared.raw(true).iterate(...values));
    return { columns, next: () => nextPortion(rows).catch(refuse) };
  });
}

function* cellRows(rows: Iterable<unknown>): Generator<Cell[]> {
  for (const row of rows) if (Array.isArray(row)) yield row.map(cellOf);
}

function explained<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    return refuse(error);
  }
}

function refuse(error: unknown): never {
  if (error instanceof DatasourceFailure) throw error;
  if (codeOf(error) === 'SQLITE_BUSY') throw new DatasourceFailure('file_locked');
  throw new StatementError(error instanceof Error ? error.message : 'failed');
}

function cellOf(value: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return integerCell(value);
  if (value instanceof Uint8Array) return new Uint8Array(value);
  return typeof value === 'number' || typeof value === 'string' ? value : String(value);
}

/** Columns have an affinity, not a type: what is declared is a hint, and none where a column is computed. */
function columnOf({ name, type }: { readonly name: string; readonly type: string | null }): Column {
  return { name, type: columnType((type ?? '').toUpperCase()) };
}

function columnType(declared: string): ColumnType {
  if (declared.includes('INT')) return 'integer';
  if (/REAL|FLOA|DOUB/.test(declared)) return 'float';
  if (/CHAR|CLOB|TEXT/.test(declared)) return 'text';
  return declared.includes('BLOB') ? 'bytes' : 'other';
}
