/** Values of Trino's client protocol, and parameters as SQL literals. */

import {
  type ColumnType,
  integerCell,
  type Parameter,
  type ResultColumn,
  type RowValue,
} from '../../rows.ts';
import { listMember, textMember } from '../http/answer-members.ts';
import { jsonWithLongIntegers, withoutMark } from '../http/long-integers.ts';

/** Returns the columns that a response describes. */
export function trinoColumns(body: unknown): ResultColumn[] {
  return listMember(body, 'columns').map((column) => ({
    name: textMember(column, 'name') ?? '',
    type: columnType(textMember(column, 'type') ?? ''),
  }));
}

function columnType(native: string): ColumnType {
  const [base = ''] = native.split('(', 1); // the name without its parameters
  const name = base.trim();
  if (native.endsWith('with time zone')) return native.startsWith('time(') ? 'time' : 'timestamptz';
  const types: Readonly<Record<string, ColumnType>> = {
    boolean: 'boolean',
    tinyint: 'integer',
    smallint: 'integer',
    integer: 'integer',
    bigint: 'integer',
    real: 'float',
    double: 'float',
    decimal: 'decimal',
    varchar: 'text',
    char: 'text',
    varbinary: 'bytes',
    date: 'date',
    time: 'time',
    timestamp: 'timestamp',
    uuid: 'uuid',
    json: 'json',
    array: 'json',
    map: 'json',
    row: 'json',
  };
  return types[name] ?? 'other';
}

/** Returns the cells of one row. */
export function trinoValues(row: unknown, columns: readonly ResultColumn[]): RowValue[] {
  const values = Array.isArray(row) ? row : [];
  return columns.map(({ type }, at) => cellOf(values[at], type));
}

function cellOf(marked: unknown, type: ColumnType): RowValue {
  const value = withoutMark(marked);
  if (value === null || value === undefined) return null;
  if (type === 'integer' && (typeof value === 'number' || typeof value === 'string'))
    return integerCell(value);
  if (type === 'float') return Number(value);
  if (type === 'bytes') return new Uint8Array(Buffer.from(String(value), 'base64'));
  if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') return value;
  return jsonWithLongIntegers(value);
}

/** Returns a parameter as an SQL literal. */
export function literal(parameter: Parameter): string {
  if (parameter === null) return 'NULL';
  if (parameter instanceof Uint8Array) return `X'${Buffer.from(parameter).toString('hex')}'`;
  if (typeof parameter === 'string') return `'${parameter.replaceAll("'", "''")}'`;
  if (typeof parameter !== 'number') return String(parameter);
  return Number.isFinite(parameter)
    ? `DOUBLE '${parameter}'`
    : parameter > 0
      ? 'infinity()'
      : Number.isNaN(parameter)
        ? 'nan()'
        : '-infinity()';
}
