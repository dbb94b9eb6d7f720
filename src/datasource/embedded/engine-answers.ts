/** Checks the answers of an embedded database's process, which runs native code on files of users. */
import { DATASOURCE_FAILURES, DatasourceFailure, type FailureCategory } from '../failure.ts';
import { COLUMN_TYPES, type Parameter, type ResultColumn } from '../rows.ts';
import { PackedRows } from './packed-rows.ts';

/** Throws `DatasourceFailure` when the answer reports a failure or is not valid. */
export function checkAnswer(answer: unknown, op: 'opened' | 'ended'): void {
  if (fieldsOf(answer).op !== op) throw new DatasourceFailure('failed');
}

/** Returns the columns of a statement; `null` when it gives no rows. Throws like `checkAnswer`. */
export function columnsOf(answer: unknown): readonly ResultColumn[] | null {
  const { op, columns } = fieldsOf(answer);
  if (op !== 'columns') throw new DatasourceFailure('failed');
  if (columns === null) return null;
  if (!Array.isArray(columns)) throw new DatasourceFailure('failed');
  return columns.map(columnOf);
}

/**
 * Returns how many rows a statement without columns has changed; `undefined` when the database does
 * not report it.
 */
export function changedOf(answer: unknown): number | undefined {
  const { changed } = fieldsOf(answer);
  return typeof changed === 'number' ? changed : undefined;
}

/** Returns the next rows; none at the end. Throws like `checkAnswer`. */
export function rowsOf(answer: unknown, columns: readonly ResultColumn[]): PackedRows {
  if (Buffer.isBuffer(answer)) return new PackedRows(answer, columns);
  fieldsOf(answer);
  throw new DatasourceFailure('failed');
}

/** Returns parameters as JSON. A whole float is marked, because it would be read as an integer. */
export function parameterFields(parameters: readonly Parameter[]): unknown[] {
  return parameters.map((one) => {
    if (typeof one === 'bigint')
      return Number.isSafeInteger(Number(one)) ? Number(one) : { integer: String(one) };
    if (typeof one === 'number' && (Number.isInteger(one) || !Number.isFinite(one)))
      return { float: String(one) };
    return one instanceof Uint8Array ? { bytes: Buffer.from(one).toString('base64') } : one;
  });
}

function fieldsOf(answer: unknown): Readonly<Record<string, unknown>> {
  if (typeof answer !== 'object' || answer === null) throw new DatasourceFailure('failed');
  const fields: Readonly<Record<string, unknown>> = { ...answer };
  if (fields.op === 'failed') throw failureOf(fields);
  return fields;
}

function failureOf({ category, detail }: Readonly<Record<string, unknown>>): DatasourceFailure {
  const said = typeof detail === 'string' ? detail : undefined;
  if (category === 'package_missing') {
    const message = `The server’s Python (TROUPE_PYTHON) has no package ${said}, which this kind of database needs.`;
    return new DatasourceFailure('driver_missing', message);
  }
  return new DatasourceFailure(isCategory(category) ? category : 'failed', undefined, said);
}

function isCategory(category: unknown): category is FailureCategory {
  return typeof category === 'string' && Object.hasOwn(DATASOURCE_FAILURES, category);
}

function columnOf(value: unknown): ResultColumn {
  const { name, type, byCell }: Readonly<Record<string, unknown>> = { ...Object(value) };
  const known = COLUMN_TYPES.find((one) => one === type);
  if (typeof name !== 'string' || known === undefined) throw new DatasourceFailure('failed');
  return { name, type: known, ...(byCell === true && { byCell }) };
}
