/** Rows of query results, in the same few kinds of value for every database. */
import { cutText } from '#src/base/text/cut-text.ts';
import { DatasourceFailure } from './failure.ts';

/** One value. Numbers are exact or floats; decimals, dates, times and other values that JavaScript lacks are text. */
export type RowValue = null | boolean | number | bigint | string | Uint8Array;

/** The ways in which the cells of a column are read. */
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

/** Most bytes of one row, as the database sends it: the server and the kernel hold a whole row in memory. */
export const ROW_LIMIT_BYTES = 16 * 1024 * 1024;

/** One column of a result. */
export interface ResultColumn {
  readonly name: string;
  /** `integer` cells are number or bigint, `bytes` cells Uint8Array; decimals, dates and times are text. */
  readonly type: ColumnType;
  /**
   * Set where the database keeps values of any kind in the column, as SQLite does: each cell is of its own kind, and `type` is
   * only a hint.
   */
  readonly byCell?: true;
}

/**
 * Some rows of a result. A statement that returns columns gives at least one batch, so its columns are known even when
 * it has no rows; a statement without columns gives no batch.
 */
export interface RowBatch {
  readonly columns: readonly ResultColumn[];
  readonly rows: readonly (readonly RowValue[])[];
  /** Returns the rows as JSON for kernels, if the connector can write it without making `rows`. */
  json?(): Uint8Array;
  /** Returns the rows packed by column, if the connector can do that without making `rows`. */
  packed?(): PackedBatch;
  /** The number of rows; known before `rows`, which is made on demand. */
  readonly rowCount?: number;
}

/**
 * How one batch has the cells of a column: as a packed array of this type, or as JSON. With `?` the column has a null in the
 * batch.
 */
export type ColumnForm = `${PackedType}${'' | '?'}` | 'rows';
type PackedType = 'boolean' | 'integer' | 'float' | 'text' | 'date' | 'timestamp' | 'timestamptz';

/** A batch by columns, as kernels read it (src/confined/notebook_modules/troupe/columns.py). */
export interface PackedBatch {
  readonly forms: readonly ColumnForm[];
  /**
   * The arrays of the packed columns, one after the other, and then a JSON array of the rows of the other columns. An array is
   * little-endian: a byte for each boolean (2 is null), 4 bytes for each date (days), 8 bytes for each integer, float and
   * timestamp (microseconds), all since 1970 in UTC. Before an array with nulls stands a byte for each row, 1 for null. Texts
   * are their lengths in bytes, 4 bytes each (-1 is null), and then all their bytes.
   */
  readonly parts: readonly Uint8Array[];
}

/**
 * A value for a placeholder of a statement. Unlike in cells, a bigint is an integer of any size and a number is a float,
 * also when it is whole: databases compute differently with 2 and 2.0.
 */
export type Parameter = RowValue;

/** Throws for a float that the database cannot hold, because it has neither infinity nor NaN. */
export function refuseInfinite(parameter: Parameter): void {
  if (typeof parameter === 'number' && !Number.isFinite(parameter))
    throw new DatasourceFailure('query', undefined, 'This database has neither infinity nor NaN.');
}

/** How a statement is run. */
export interface QueryOptions {
  /** Aborting it cancels the query, in the database too where that is possible. */
  readonly signal: AbortSignal;
  /** Whether the database itself must refuse writes. */
  readonly readOnly: boolean;
  /**
   * The share of the kernel, whose memory limit the embedded database counts towards; absent when
   * no kernel runs the statement.
   */
  readonly memoryShare?: string;
  /**
   * Called at the end of a statement with the number of rows that it inserted, updated or deleted,
   * if the database reports it: PostgreSQL, Redshift, MySQL, MariaDB, SQL Server and SQLite.
   */
  readonly onChanged?: (rows: number) => void;
  /** Rows after which the query ends; no limit when unset. */
  readonly maxRows?: number;
}

/** Most bytes between two batches: one row, and the bytes received of its batch before it. */
export const ROW_AND_BATCH_BYTES = ROW_LIMIT_BYTES + 2 * 1024 * 1024;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/**
 * No database has integers with more digits, and reading one with megabytes of digits takes
 * seconds.
 */
const MAX_INTEGER_CHARS = 1000;

/**
 * Returns the integer as a number if that is exact, else as a bigint. Throws a `RangeError` for an
 * integer with too many digits.
 */
export function integerCell(value: bigint | string | number): number | bigint {
  if (typeof value === 'string' && value.length > MAX_INTEGER_CHARS) throw new RangeError('Too many digits.');
  const exact = BigInt(value);
  return exact <= MAX_SAFE && exact >= -MAX_SAFE ? Number(exact) : exact;
}

/** Names are at most some hundred characters, but a database may use the text of an expression as a name. */
const MAX_NAME_CHARS = 10_000;

/** Yields the batches with the names of their columns cut to `MAX_NAME_CHARS`. */
export async function* cutNames(batches: AsyncIterable<RowBatch>): AsyncGenerator<RowBatch> {
  for await (const batch of batches) {
    const isLong = batch.columns.some(({ name }) => name.length > MAX_NAME_CHARS);
    yield isLong ? { ...batch, columns: batch.columns.map(withShortName) } : batch;
  }
}

function withShortName({ name, ...rest }: ResultColumn): ResultColumn {
  return { ...rest, name: cutText(name, 0, MAX_NAME_CHARS) };
}

/** Yields the batches until they have `maxRows` rows together; the last batch is cut. */
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
