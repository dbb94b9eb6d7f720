/** Values of Databricks' Statement Execution API, all of which are text. */

import {
  type ColumnType,
  integerCell,
  type Parameter,
  type ResultColumn,
  type RowValue,
} from '../../rows.ts';
import { textMember } from '../http/answer-members.ts';

const TYPES: Readonly<Record<string, ColumnType>> = {
  BOOLEAN: 'boolean',
  BYTE: 'integer',
  SHORT: 'integer',
  INT: 'integer',
  LONG: 'integer',
  FLOAT: 'float',
  DOUBLE: 'float',
  DECIMAL: 'decimal',
  STRING: 'text',
  CHAR: 'text',
  BINARY: 'bytes',
  DATE: 'date',
  TIMESTAMP: 'timestamptz',
  TIMESTAMP_NTZ: 'timestamp',
  INTERVAL: 'interval',
  ARRAY: 'json',
  MAP: 'json',
  STRUCT: 'json',
  VARIANT: 'json',
};

/** Returns the column for one entry of a result's manifest. */
export function databricksColumn(described: unknown): ResultColumn {
  return {
    name: textMember(described, 'name') ?? '',
    type: TYPES[textMember(described, 'type_name') ?? ''] ?? 'other',
  };
}

/** Returns the cells of one row. */
export function databricksValues(row: unknown, columns: readonly ResultColumn[]): RowValue[] {
  const values = Array.isArray(row) ? row : [];
  return columns.map(({ type }, at) => {
    const value: unknown = values[at];
    if (typeof value !== 'string') return null;
    if (type === 'integer') return integerCell(value);
    if (type === 'float') return Number(value);
    if (type === 'boolean') return value === 'true';
    return type === 'bytes' ? new Uint8Array(Buffer.from(value, 'base64')) : value;
  });
}

/** Returns type and value of a statement parameter. */
export function databricksParameter(value: Parameter): { type: string; value?: string } {
  if (value === null) return { type: 'VOID' };
  if (value instanceof Uint8Array) return { type: 'BINARY', value: Buffer.from(value).toString('base64') };
  if (typeof value === 'boolean') return { type: 'BOOLEAN', value: String(value) };
  if (typeof value === 'bigint') return { type: 'LONG', value: String(value) };
  return { type: typeof value === 'number' ? 'DOUBLE' : 'STRING', value: String(value) };
}
