/**
 * Values of Snowflake's SQL API. All are text: times are in seconds, and dates in days since 1970.
 */

import { type ColumnType, integerCell, type ResultColumn, type RowValue } from '../../rows.ts';
import { memberOf, textMember } from '../http/answer-members.ts';

const TYPES: Readonly<Record<string, ColumnType>> = {
  boolean: 'boolean',
  real: 'float',
  text: 'text',
  binary: 'bytes',
  date: 'date',
  time: 'time',
  timestamp_ntz: 'timestamp',
  timestamp_ltz: 'timestamptz',
  timestamp_tz: 'timestamptz',
  variant: 'json',
  object: 'json',
  array: 'json',
};

/** Returns the column for one entry of a result's `rowType`. */
export function snowflakeColumn(described: unknown): ResultColumn {
  return { name: textMember(described, 'name') ?? '', type: columnType(described) };
}

function columnType(described: unknown): ColumnType {
  const native = nativeType(described);
  if (native !== 'fixed') return TYPES[native] ?? 'other';
  const scale = memberOf(described, 'scale');
  return typeof scale === 'number' && scale > 0 ? 'decimal' : 'integer';
}

function nativeType(described: unknown): string {
  return (textMember(described, 'type') ?? '').toLowerCase();
}

/** Returns the cells of one row. */
export function snowflakeValues(row: unknown, described: readonly unknown[]): RowValue[] {
  const values = Array.isArray(row) ? row : [];
  return described.map((column, at) => {
    const value: unknown = values[at];
    return typeof value === 'string' ? cellOf(value, nativeType(column), columnType(column)) : null;
  });
}

const DAY_MS = 86_400_000;

function cellOf(value: string, native: string, type: ColumnType): RowValue {
  if (type === 'integer') return integerCell(value);
  if (type === 'float') return Number(value.replace(/^(-?)inf$/i, '$1Infinity'));
  if (type === 'boolean') return value === 'true' || value === '1';
  if (type === 'bytes') return new Uint8Array(Buffer.from(value, 'hex'));
  if (type === 'date') return new Date(Number(value) * DAY_MS).toISOString().slice(0, 10);
  if (type === 'time') return instant(value, 0).slice(11);
  if (type === 'timestamp') return instant(value, 0);
  if (type !== 'timestamptz') return value;
  if (native === 'timestamp_ltz') return `${instant(value, 0)}+00:00`;
  // The offset is in minutes east of Greenwich, plus a day so that it is never negative.
  const [seconds = '0', shifted = '1440'] = value.split(' ');
  const offset = Number(shifted) - 1440;
  return instant(seconds, offset) + offsetText(offset);
}

/** Returns date and time of seconds since 1970, to the microsecond. */
function instant(seconds: string, offsetMinutes: number): string {
  const [, sign = '', whole = '0', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(seconds) ?? [];
  const size = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0').slice(0, 6));
  const micros = (sign === '-' ? -size : size) + BigInt(offsetMinutes) * 60_000_000n;
  const rest = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const text = new Date(Number((micros - rest) / 1000n)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}.${String(rest).padStart(6, '0')}`;
}

function offsetText(minutes: number): string {
  const pad = (value: number) => String(value).padStart(2, '0');
  const size = Math.abs(minutes);
  return `${minutes < 0 ? '-' : '+'}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
