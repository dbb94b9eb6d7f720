/** What queries give: the same few kinds of value from every database. */

/** Numbers are exact or floats; decimals, dates, times and whatever JavaScript has no value for are text. */
export type Cell = null | boolean | number | bigint | string | Uint8Array;

export const COLUMN_TYPES = [
  'boolean',
  'integer',
  'float',
  'decimal',
  'text',
  'bytes',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'interval',
  'uuid',
  'json',
  'other',
] as const;

export type ColumnType = (typeof COLUMN_TYPES)[number];

/** Most bytes of one row, as the database sends it. One row is held whole, here and in the kernel. */
export const ROW_LIMIT_BYTES = 16 * 1024 * 1024;

export interface Column {
  readonly name: string;
  /** How cells are to be read: `integer` is number or bigint, `bytes` Uint8Array, `decimal` and times are text. */
  readonly type: ColumnType;
}

/** Every query gives at least one batch, so its columns are known even when it has no rows; none when it returns none. */
export interface RowBatch {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Cell[])[];
  /** The rows as they travel to a kernel, where the database has them in bytes: then `rows` is made when it is asked for. */
  json?(): Uint8Array;
}

export type Parameter = Cell;

export interface QueryOptions {
  /** Ends the query, in the database too where that is possible. */
  readonly signal: AbortSignal;
  /** The database itself refuses to write. */
  readonly readOnly: boolean;
  /** Rows after which the query is ended; unset is no limit. */
  readonly maxRows?: number;
}

/** For `mostBetweenBatches`: one row, and what of its batch was there before. */
export const ROW_AND_BATCH_BYTES = ROW_LIMIT_BYTES + 2 * 1024 * 1024;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** A number where it is exact. */
export function integerCell(value: bigint | string | number): number | bigint {
  const exact = BigInt(value);
  return exact <= MAX_SAFE && exact >= -MAX_SAFE ? Number(exact) : exact;
}

/** Cuts batches so that no more than `maxRows` rows come out in all. */
export async function* limitRows(
  batches: AsyncIterable<RowBatch>,
  maxRows: number | undefined,
): AsyncGenerator<RowBatch> {
  if (maxRows === undefined) return yield* batches;
  let left = maxRows;
  for await (const { columns, rows } of batches) {
    yield { columns, rows: rows.length > left ? rows.slice(0, left) : rows };
    left -= rows.length;
    if (left <= 0) return;
  }
}
