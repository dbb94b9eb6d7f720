/** Statements of agents for SQL Server, which has no read-only mode. */
import { onlyReads } from '../../query/read-only.ts';
import { mayContain } from '../../query/sql-words.ts';
import { statementStart } from '../../query/statements.ts';

/** T-SQL needs no separator between statements, so a read-only statement must not contain these words anywhere. */
const WRITING = new Set(
  (
    'ADD ALTER BACKUP BULK CHECKPOINT COMMIT CONVERSATION CREATE DBCC DELETE DENY DIALOG DROP EXEC EXECUTE GRANT INSERT INTO KILL ' +
    'MERGE OPENDATASOURCE OPENQUERY OPENROWSET RAISERROR RECEIVE RECONFIGURE RENAME RESTORE REVERT REVOKE ROLLBACK SAVE SET ' +
    'SETUSER SHUTDOWN TRAN TRANSACTION TRIGGER TRUNCATE UPDATE UPDATETEXT USE WAITFOR WRITETEXT'
  ).split(' '),
);
/** `NEXT VALUE FOR` takes a number from a sequence. There can be comments between the words. */
const SEQUENCE = ['NEXT', 'VALUE', 'FOR'].map((word) => new Set([word]));
/** If a batch begins with a word that is not T-SQL, the server calls the procedure of that name. */
const FIRST_WORDS = new Set(['SELECT', 'WITH']);

/**
 * Returns whether a statement, which may be a batch of several, only reads, judging by its words.
 */
export function mayRunReadOnly(sql: string): boolean {
  return FIRST_WORDS.has(statementStart(sql).word) && onlyReads(sql, writes);
}

function writes(sql: string): boolean {
  return mayContain(sql, WRITING) || SEQUENCE.every((word) => mayContain(sql, word));
}

/** Rights to change something: those on a database, and those on a schema or an object in it. */
const DATABASE_RIGHTS = ['INSERT', 'UPDATE', 'DELETE', 'EXECUTE', 'ALTER', 'CONTROL', 'CREATE TABLE'];
const OBJECT_RIGHTS = ['INSERT', 'UPDATE', 'DELETE', 'ALTER', 'CONTROL'];
/** The most tables and views whose rights are checked: each takes the server some microseconds. */
const MAX_OBJECTS = 5_000;

const granted = (name: string, level: string, rights: readonly string[]) =>
  rights.map((right) => `HAS_PERMS_BY_NAME(${name}, '${level}', '${right}') = 1`).join(' OR ');

/**
 * Returns one row with 1 when the account may change anything in its database, or 0. An account sees only objects on
 * which it has some right (https://learn.microsoft.com/sql/t-sql/functions/has-perms-by-name-transact-sql).
 */
export const MAY_WRITE = `SELECT CASE WHEN HAS_PERMS_BY_NAME(NULL, NULL, 'CONTROL SERVER') = 1
  OR ${granted('DB_NAME()', 'DATABASE', DATABASE_RIGHTS)}
  OR EXISTS (SELECT 1 FROM sys.schemas AS s WHERE ${granted('QUOTENAME(s.name)', 'SCHEMA', [...OBJECT_RIGHTS, 'EXECUTE'])})
  OR EXISTS (SELECT 1 FROM (SELECT TOP (${MAX_OBJECTS}) QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name) AS name
    FROM sys.objects WHERE type IN ('U', 'V')) AS o WHERE ${granted('o.name', 'OBJECT', OBJECT_RIGHTS)})
  OR EXISTS (SELECT 1 FROM (SELECT TOP (${MAX_OBJECTS}) QUOTENAME(SCHEMA_NAME(schema_id)) + '.' + QUOTENAME(name) AS name
    FROM sys.procedures) AS p WHERE ${granted('p.name', 'OBJECT', ['EXECUTE'])})
  THEN 1 ELSE 0 END AS may_write`;
