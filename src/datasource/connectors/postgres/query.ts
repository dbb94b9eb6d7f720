/** Runs one statement on a connection to PostgreSQL and yields its rows as they arrive. */
import type { Client, QueryResult } from 'pg';
import Cursor from 'pg-cursor';
import { DatasourceFailure } from '../../failure.ts';
import { beginsAsReading } from '../../query/statements.ts';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
import { cancelRepeatedly } from '../repeated-cancel.ts';
import { postgresBatch } from './rows.ts';
import type { PostgresTap } from './tap.ts';
import { PARSERS, parameterFor } from './values.ts';

/** A connection to PostgreSQL. */
export interface PostgresChannel {
  readonly client: Client;
  readonly tap: PostgresTap;
  /** Asks the server to cancel this client's current statement. */
  readonly cancel: () => Promise<void>;
}

/**
 * A read-only transaction does not keep a superuser from changing settings, or from running COPY TO PROGRAM, even
 * within DO.
 */
const ONLY_READING = 'Only SELECT, WITH, VALUES, TABLE, SHOW and EXPLAIN are allowed here.';

const FIRST_ROWS = 256;
const MAX_PORTION_ROWS = 65_536;
/**
 * The approximate size of the portions that are requested from the server. Between two portions a statement can end
 * without a cancel.
 */
const PORTION_BYTES = 4 * 1024 * 1024;

/** Yields the rows of a statement. Rejects with errors of the driver; the guard turns them into failures. */
export async function* postgresRows(
  { client, tap, cancel }: PostgresChannel,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, onChanged, maxRows = Number.POSITIVE_INFINITY }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly && !beginsAsReading(sql)) throw new DatasourceFailure('query', undefined, ONLY_READING);
  if (readOnly) await client.query('BEGIN READ ONLY');
  const cursor = new Cursor(sql, parameters.map(parameterFor), { rowMode: 'array', types: PARSERS });
  const stopCancelling = cancelRepeatedly(signal, cancel);
  let reading: Promise<Summary> | undefined;
  let isDone = false;
  try {
    signal.throwIfAborted();
    tap.open();
    client.query(cursor);
    let left = maxRows;
    let size = FIRST_ROWS;
    let given = tap.rowCount;
    for (let portions = 0; ; portions++) {
      signal.throwIfAborted();
      const asked = Math.max(1, Math.min(size, left));
      const rowsBefore = tap.rowCount;
      let bytes = 0;
      let isRead = false;
      reading = read(cursor, asked).finally(() => {
        isRead = true;
      });
      for (let batches = 0; ; batches++) {
        await tap.enoughOr(reading);
        if (isRead) await reading;
        const isLast = isRead;
        const parts = tap.take();
        const count = tap.rowCount - given;
        given = tap.rowCount;
        bytes += parts.reduce((sum, part) => sum + part.length, 0);
        const isNews = parts.length > 0 || portions + batches === 0;
        if (tap.fields !== undefined && tap.fields.length > 0 && isNews)
          yield postgresBatch(tap.fields, parts, count);
        if (isLast) break;
      }
      const rows = tap.rowCount - rowsBefore;
      left -= rows;
      if (rows < asked || left <= 0) {
        const { command, rowCount } = await reading;
        if (CHANGES.has(command) && rowCount !== null) onChanged?.(rowCount);
        break;
      }
      size = Math.max(
        1,
        Math.min(MAX_PORTION_ROWS, size * 4, Math.floor((PORTION_BYTES * rows) / Math.max(1, bytes))),
      );
    }
    isDone = true;
  } finally {
    tap.discard();
    const over = finish({ client, tap }, cursor, reading, readOnly);
    // Only the first error counts: the connection may be lost, so that finishing fails as well.
    await (isDone ? over : over.catch(() => {})).finally(stopCancelling);
    tap.close();
  }
}

/**
 * The server's summary of a statement. For a statement that only reads, its count covers only the
 * last portion.
 */
type Summary = Pick<QueryResult, 'command' | 'rowCount'>;

const CHANGES: ReadonlySet<string> = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

function read(cursor: Cursor, rows: number): Promise<Summary> {
  return new Promise((done, fail) => {
    // The driver's types say that a success passes `undefined`; it also passes `null`.
    cursor.read(rows, (error, _, summary) => (error ? fail(error) : done(summary)));
  });
}

async function finish(
  { client, tap }: Pick<PostgresChannel, 'client' | 'tap'>,
  cursor: Cursor,
  reading: Promise<unknown> | undefined,
  readOnly: boolean,
): Promise<void> {
  await reading?.catch(() => {}); // the last requested rows are still arriving
  await Promise.race([cursor.close(), tap.gone]);
  if (readOnly) await client.query('ROLLBACK');
}
