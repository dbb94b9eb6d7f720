/** Databases of an attacker: their schemas call forbidden functions. */
import { FORGED_DDL, PLANTED, PLANTED_DDL } from '#test/escape/sql-statements.ts';
import { runPython } from './python-databases.ts';

/** Statements with real paths in place of the placeholders. */
export function placed(statement: string, paths: Readonly<Record<string, string>>): string {
  return Object.entries(paths).reduce(
    (text, [name, path]) => text.replace(new RegExp(`\\b${name}\\b(?=['/?])`, 'g'), path),
    statement,
  );
}

/** Python that writes `a.sqlite`, `planted.sqlite`, `forged.sqlite`, `a.duckdb`, `data/data.csv` and `inside` where it runs. */
export function plantingCode(paths: Readonly<Record<string, string>>): string {
  const json = (value: unknown) => `json.loads(${JSON.stringify(JSON.stringify(value))})`;
  const rows = PLANTED.map(([type, name, table, sql]) => [type, name, table, placed(sql, paths)]);
  return `
import json, os, sqlite3, duckdb
with sqlite3.connect("a.sqlite") as plain:
    plain.execute("CREATE TABLE t (a, b)"); plain.execute("INSERT INTO t VALUES (1, 2)")
plain.close()
with sqlite3.connect("planted.sqlite") as planted:
    planted.execute("CREATE TABLE t (a, b)"); planted.execute("INSERT INTO t VALUES (1, 2)")
    planted.create_function("load_extension", 1, lambda _: None, deterministic=True)
    planted.create_function("writefile", 2, lambda *_: None, deterministic=True)
    for sql in ${json(PLANTED_DDL.map((sql) => placed(sql, paths)))}: planted.execute(sql)
    planted.commit()
    planted.execute("PRAGMA writable_schema = ON")
    for row in ${json(rows)}: planted.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, 0, ?)", row)
planted.close()
with sqlite3.connect("forged.sqlite") as forged:
    forged.create_function("load_extension", 1, lambda _: None, deterministic=True)
    for sql in ${json(FORGED_DDL.map((sql) => placed(sql, paths)))}: forged.execute(sql)
forged.close()
with duckdb.connect("a.duckdb") as database:
    database.execute("CREATE TABLE t AS SELECT 1 AS a")
    database.execute("CREATE MACRO planted_macro() AS TABLE SELECT * FROM read_text('/etc/passwd')")
    database.execute("CREATE VIEW planted_view AS SELECT * FROM read_text('/etc/passwd')")
os.makedirs("data", exist_ok=True)
open("data/data.csv", "w").write("a\\n1\\n")
open("inside", "w").write("inside")
`;
}

/** Writes them into the folder. */
export function plantDatabases(folder: string, paths: Readonly<Record<string, string>>): void {
  runPython(`import os, sys\nos.chdir(sys.argv[1])\n${plantingCode(paths)}`, folder);
}
