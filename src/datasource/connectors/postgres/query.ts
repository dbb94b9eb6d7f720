/** One statement on a connection to PostgreSQL, and its rows as they come. */
import type { Client } from 'pg';
import Cursor from 'pg-cursor';
import type { Parameter, QueryOptions, RowBatch } from '../../rows.ts';
import { postgresBatch } from './rows.ts';
import type { PostgresTap } from './tap.ts';
import { PARSERS, parameterFor } from './values.ts';

export interface PostgresLine {
  readonly client: Client;
  readonly tap: PostgresTap;
  /** Asks the server to end what this client is doing. */
  readonly cancel: () => void;
}

const FIRST_ROWS = 256;
const MOST_ROWS = 65_536;
/** About what the server is asked for at once. Between two such portions the statement can be left without a cancel. */
const PORTION_BYTES = 4 * 1024 * 1024;

export async function* rowsOf(
  { client, tap, cancel }: PostgresLine,
  sql: string,
  parameters: readonly Parameter[],
  { signal, readOnly, maxRows = Number.POSITIVE_INFINITY }: QueryOptions,
): AsyncGenerator<RowBatch> {
  if (readOnly) await client.query('BEGIN READ ONLY');
  const cursor = new Cursor(sql, parameters.map(parameterFor), { rowMode: 'array', types: PARSERS });
  signal.addEventListener('abort', cancel, { once: true });
  let reading: Promise<void> | undefined;
  let isDone = false;
  try {
    signal.throwIfAborted();
    tap.open();
    client.query(cursor);
    let left = maxRows;
    let size = FIRST_ROWS;
    for (let portions = 0; ; portions++) {
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
        bytes += parts.reduce((sum, part) => sum + part.length, 0);
        const isNews = parts.length > 0 || portions + batches === 0;
        if (tap.fields !== undefined && tap.fields.length > 0 && isNews)
          yield postgresBatch(tap.fields, parts);
        if (isLast) break;
      }
      const rows = tap.rowCount - rowsBefore;
      left -= rows;
      if (rows < asked || left <= 0) break;
      size = Math.max(
        1,
        Math.min(MOST_ROWS, size * 4, Math.floor((PORTION_BYTES * rows) / Math.max(1, bytes))),
      );
    }
    isDone = true;
  } finally {
    signal.removeEventListener('abort', cancel);
    tap.discard();
    const over = finish({ client, tap }, cursor, reading, readOnly);
    // What went wrong before is what there is to say: the connection may be gone.
    await (isDone ? over : over.catch(() => {}));
    tap.close();
  }
}

function read(cursor: Cursor, rows: number): Promise<void> {
  return new Promise((done, fail) => {
    // Not `null` but `undefined` by its types, and both in truth.
    cursor.read(rows, (error) => (error ? fail(error) : done()));
  });
}

async function finish(
  { client, tap }: Pick<PostgresLine, 'client' | 'tap'>,
  cursor: Cursor,
  reading: Promise<void> | undefined,
  readOnly: boolean,
): Promise<void> {
  await reading?.catch(() => {}); // the rows of what was left are on their way
  await Promise.race([cursor.close(), tap.gone]);
  if (readOnly) await client.query('ROLLBACK');
}
