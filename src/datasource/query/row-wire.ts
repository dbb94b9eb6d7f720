/**
 * Rows and parameters between server and kernel. An answer is a JSON object, in which values that JSON lacks are written as
 * text. For a kernel that asks for columns, it is
 *
 *     C · u32le length of the JSON · the JSON · the parts of a `PackedBatch`
 */
import { DatasourceFailure } from '../failure.ts';
import type { Parameter, RowBatch, RowValue } from '../rows.ts';

/** The parts of one answer. */
export type AnswerParts = readonly (string | Uint8Array)[];

/** How a kernel wants the rows of a batch. A connector that cannot pack columns gives rows for both. */
export type BatchForm = 'rows' | 'columns';

/** Returns a batch as an answer, with the names and types of its columns if it is the first one. */
export function encodeBatch(batch: RowBatch, form: BatchForm, isFirst: boolean): AnswerParts {
  if (form === 'columns' && batch.packed !== undefined) {
    const { forms, parts } = batch.packed();
    const head = Buffer.from(JSON.stringify({ more: true, count: batch.rowCount, forms }));
    const start = Buffer.from('C\0\0\0\0');
    start.writeUInt32LE(head.length, 1);
    return [start, head, ...parts];
  }
  const canPack = batch.packed === undefined ? '' : ',"packs":true';
  const columns = isFirst ? `,"columns":${JSON.stringify(batch.columns)}${canPack}` : '';
  return [`{"more":true${columns},"rows":`, encodeRows(batch), '}'];
}

/** Returns the rows as a JSON array. Cells of columns that hold plain JSON values are encoded as they are. */
function encodeRows(batch: RowBatch): Uint8Array {
  return batch.json?.() ?? Buffer.from(jsonOf(batch));
}

function jsonOf({ columns, rows }: RowBatch): string {
  const special = columns.flatMap(({ type }, index) => (SPECIAL.has(type) ? [index] : []));
  if (special.length === 0) return JSON.stringify(rows);
  return JSON.stringify(
    rows.map((row) => {
      const plain: unknown[] = [...row];
      for (const index of special) plain[index] = plainCell(row[index] ?? null);
      return plain;
    }),
  );
}

const SPECIAL: ReadonlySet<string> = new Set(['integer', 'float', 'bytes', 'other']);

function plainCell(cell: RowValue): unknown {
  if (typeof cell === 'bigint') return cell.toString();
  if (typeof cell === 'number' && !Number.isFinite(cell)) return String(cell);
  return cell instanceof Uint8Array ? Buffer.from(cell).toString('base64') : cell;
}

/** Floats that JSON cannot represent. */
const NOT_FINITE: ReadonlySet<unknown> = new Set(['NaN', 'Infinity', '-Infinity']);

/**
 * Returns the parameters that a kernel sent. Once parsed, 2.0 looks like 2. So the kernel sends a
 * whole float as `{"float": 2.0}`, and a plain whole number is an integer. Throws
 * `DatasourceFailure` when the parameters are not a list of known values.
 */
export function parseParameters(value: unknown): Parameter[] {
  if (!Array.isArray(value)) throw invalidParameters();
  return value.map((one: unknown) => {
    if (one === null || typeof one === 'boolean' || typeof one === 'string') return one;
    if (typeof one === 'number') return Number.isInteger(one) ? BigInt(one) : one;
    const { integer, bytes, float } = {
      integer: undefined,
      bytes: undefined,
      float: undefined,
      ...Object(one),
    };
    if (typeof float === 'number' || NOT_FINITE.has(float)) return Number(float);
    if (typeof integer === 'string' && /^-?\d{1,1000}$/.test(integer)) return BigInt(integer);
    if (typeof bytes === 'string') return new Uint8Array(Buffer.from(bytes, 'base64'));
    throw invalidParameters();
  });
}

function invalidParameters(): DatasourceFailure {
  return new DatasourceFailure(
    'query',
    undefined,
    'Parameters must be a list of None, bool, int, float, str or bytes values.',
  );
}
