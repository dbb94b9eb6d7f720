/** Databases that tests start with, made by Python as notebooks would make them. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const PYTHON =
  process.env.TROUPE_PYTHON || fileURLToPath(new URL('../../../../.venv/bin/python', import.meta.url));

/** Runs the statements on the SQLite database at the path, which is made when it is not there. */
export function writeSqlite(path: string, ...statements: readonly string[]): void {
  runPython(
    'import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as database:\n    for sql in sys.argv[2:]: database.execute(sql)\ndatabase.close()',
    path,
    ...statements,
  );
}

/** Runs statements on a DuckDB database. */
export function writeDuckdb(path: string, ...statements: readonly string[]): void {
  runPython(
    'import duckdb, sys\nwith duckdb.connect(sys.argv[1]) as database:\n    for sql in sys.argv[2:]: database.execute(sql)',
    path,
    ...statements,
  );
}

/** Returns the output of the script. */
export function runPython(script: string, ...args: readonly string[]): string {
  return execFileSync(PYTHON, ['-c', script, ...args], { encoding: 'utf8' });
}
