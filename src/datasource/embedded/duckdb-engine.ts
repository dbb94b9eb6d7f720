/** DuckDB over a database file of a workspace, or over its data files as one view each. */
import { dirname } from 'node:path';
import { type DuckDBConnection, DuckDBInstance, type DuckDBResult, StatementType } from '@duckdb/node-api';
import { DatasourceFailure } from '../failure.ts';
import type { Cell, Parameter } from '../rows.ts';
import { dataFilesIn } from './data-files.ts';
import { type CellReader, cellReader, columnOf, valueFor } from './duckdb-values.ts';
import {
  type Engine,
  type EngineRequest,
  type RunningQuery,
  SEVERAL,
  StatementError,
} from './engine-messages.ts';
import { nextPortion } from './row-portions.ts';
import { locate, openFiles, refuseOpenOutside } from './workspace-path.ts';

/** Nothing but what was opened: no other files, no network, no extensions, and no way to change that. */
const CLOSED = {
  temp_directory: '', // no files beside the database; first, because it cannot be set without external access
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
  allow_community_extensions: 'false',
  allow_unsigned_extensions: 'false',
  enable_external_access: 'false',
  memory_limit: '2GB',
  threads: '2',
} as const;

type OpenRequest = Extract<EngineRequest, { type: 'open' }>;

export async function openDuckdb(request: OpenRequest): Promise<Engine> {
  if (request.kind === 'files') return engineOf(await overFiles(request), READS_ONLY);
  return engineOf(await overDatabase(request), undefined);
}

/**
 * Read-only, whatever is asked for: DuckDB lets statements read the database file by its path, and who can write the
 * folder can put a link there. Without its file system it can only use what is open already, which rules writing out.
 */
async function overDatabase({ filesDirectory, path }: OpenRequest): Promise<DuckDBConnection> {
  const known = new Set(openFiles().map(([, open]) => open));
  const file = locate(filesDirectory, path, 'file');
  const instance = await DuckDBInstance.create(file, { ...CLOSED, access_mode: 'READ_ONLY' }).catch(
    (error: unknown) => {
      const isLocked = error instanceof Error && /lock on file/i.test(error.message);
      throw new DatasourceFailure(isLocked ? 'file_locked' : 'file_unusable');
    },
  );
  refuseOpenOutside(dirname(file), known);
  const connection = await instance.connect();
  await connection.run("SET disabled_filesystems = 'LocalFileSystem'; SET lock_configuration = true");
  return connection;
}

async function overFiles({ filesDirectory, path }: OpenRequest): Promise<DuckDBConnection> {
  const files = dataFilesIn(locate(filesDirectory, path, 'any'), filesDirectory);
  const paths = files.map(({ openPath }) => `'${openPath.replaceAll("'", "''")}'`).join(', ');
  const instance = await DuckDBInstance.create(':memory:', { ...CLOSED, enable_external_access: 'true' });
  const connection = await instance.connect();
  await connection.run(
    `SET allowed_paths = [${paths}]; SET enable_external_access = false; SET lock_configuration = true`,
  );
  for (const { view, reader, isOnly } of files) {
    const name = `"${view.replaceAll('"', '""')}"`;
    await connection.run(`CREATE VIEW ${name} AS SELECT * FROM ${reader}`).catch(() => {
      // One file that is not what its name says must not take the others away.
      if (isOnly) throw new DatasourceFailure('file_unusable');
    });
  }
  return connection;
}

/** Files may be opened by their descriptors, for writing too, so only statements that cannot write may run over them. */
const READS_ONLY: ReadonlySet<StatementType> = new Set([StatementType.SELECT]);

function engineOf(connection: DuckDBConnection, allowed: ReadonlySet<StatementType> | undefined): Engine {
  return {
    query: async (sql, parameters) => {
      const result = await explained(() => streamed(connection, sql, parameters, allowed));
      const names = result.columnNames();
      if (names.length === 0) return { columns: null, next: async () => [] };
      const types = result.columnTypes();
      const columns = names.map((name, at) => columnOf(name, types[at]));
      return running(result, columns, types.map(cellReader));
    },
  };
}

async function streamed(
  connection: DuckDBConnection,
  sql: string,
  parameters: readonly Parameter[],
  allowed: ReadonlySet<StatementType> | undefined,
): Promise<DuckDBResult> {
  const statements = await connection.extractStatements(sql);
  if (statements.count !== 1) throw new StatementError(SEVERAL);
  const prepared = await statements.prepare(0);
  if (allowed?.has(prepared.statementType) === false) throw new StatementError('Files can only be read.');
  prepared.bind(parameters.map(valueFor));
  return prepared.stream();
}

function running(
  result: DuckDBResult,
  columns: RunningQuery['columns'],
  readers: readonly CellReader[],
): RunningQuery {
  const rows = cellRows(result, readers);
  return { columns, next: () => explained(() => nextPortion(rows)) };
}

async function* cellRows(result: DuckDBResult, readers: readonly CellReader[]): AsyncGenerator<Cell[]> {
  for (;;) {
    const rows = (await result.fetchChunk())?.getRows() ?? [];
    if (rows.length === 0) return;
    for (const row of rows) yield row.map((value, at) => readers[at]!(value));
  }
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StatementError || error instanceof DatasourceFailure) throw error;
    throw new StatementError(error instanceof Error ? error.message : 'failed');
  }
}
