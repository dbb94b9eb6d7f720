/** Values of SQL Server as its driver returns them. */

import {
  type ColumnType,
  integerCell,
  type Parameter,
  type ResultColumn,
  type RowValue,
} from '../../rows.ts';
import { RemoteError } from '../http/client.ts';

/** The driver's description of a column. */
export interface TdsColumn {
  readonly colName: string;
  readonly scale?: number | undefined;
  readonly type: { readonly name: string };
}

const TYPES: Readonly<Record<string, ColumnType>> = {
  Bit: 'boolean',
  BitN: 'boolean',
  TinyInt: 'integer',
  SmallInt: 'integer',
  Int: 'integer',
  BigInt: 'integer',
  IntN: 'integer',
  Real: 'float',
  Float: 'float',
  FloatN: 'float',
  Decimal: 'decimal',
  DecimalN: 'decimal',
  Numeric: 'decimal',
  NumericN: 'decimal',
  Money: 'decimal',
  MoneyN: 'decimal',
  SmallMoney: 'decimal',
  Char: 'text',
  VarChar: 'text',
  NChar: 'text',
  NVarChar: 'text',
  Text: 'text',
  NText: 'text',
  Xml: 'text',
  Binary: 'bytes',
  VarBinary: 'bytes',
  Image: 'bytes',
  Date: 'date',
  Time: 'time',
  DateTime: 'timestamp',
  DateTimeN: 'timestamp',
  DateTime2: 'timestamp',
  SmallDateTime: 'timestamp',
  DateTimeOffset: 'timestamptz',
  UniqueIdentifier: 'uuid',
};

/** Returns the column for the driver's description. */
export function mssqlColumn({ colName, type }: TdsColumn): ResultColumn {
  return { name: colName, type: TYPES[type.name] ?? 'other' };
}

/** Returns the cell for a value of the driver. */
export function cellOf(value: unknown, { type, scale, colName }: TdsColumn): RowValue {
  if (value === null || value === undefined) return null;
  const kind = TYPES[type.name] ?? 'other';
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (value instanceof Date) return timeText(value, kind);
  if (typeof value === 'number') {
    return kind === 'decimal' ? decimalText(value, scale ?? MONEY_SCALE, colName) : value;
  }
  if (typeof value === 'string') return kind === 'integer' ? integerCell(value) : value;
  return typeof value === 'boolean' || typeof value === 'bigint' ? value : String(value);
}

const MONEY_SCALE = 4;
/** A double represents all integers of this many digits. */
const MAX_EXACT = 1e15;

/**
 * Returns the digits of a decimal, which the driver returns as a float. Throws where the float has
 * lost digits.
 */
function decimalText(value: number, scale: number, name: string): string {
  if (Math.abs(value) * 10 ** scale < MAX_EXACT) return value.toFixed(scale);
  throw new RemoteError(
    'INEXACT',
    `The column ${JSON.stringify(name)} has a decimal of more than 15 digits, which the driver of SQL Server rounds. Cast it to varchar, or to float.`,
  );
}

function timeText(value: Date, kind: ColumnType): string {
  const text = value.toISOString();
  const [date, time] = [text.slice(0, 10), `${text.slice(11, 23)}${beyondMilliseconds(value)}`];
  if (kind === 'date') return date;
  if (kind === 'time') return time;
  return `${date} ${time}${kind === 'timestamptz' ? '+00:00' : ''}`;
}

/**
 * Returns the microseconds of a time. The driver stores them, in seconds, in a member of the date.
 * Smaller digits are cut off.
 */
function beyondMilliseconds(value: Date): string {
  const delta = 'nanosecondsDelta' in value ? value.nanosecondsDelta : 0;
  const ticks = typeof delta === 'number' ? Math.round(delta * 1e7) : 0;
  const micros = Math.floor(ticks / 10);
  return micros > 0 ? String(micros).padStart(3, '0') : '';
}

/** Returns the name of the driver's type for a parameter. */
export function typeFor(parameter: Parameter): string {
  if (parameter instanceof Uint8Array) return 'VarBinary';
  if (typeof parameter === 'boolean') return 'Bit';
  if (typeof parameter === 'bigint') return 'BigInt';
  if (typeof parameter === 'number') return 'Float';
  return 'NVarChar';
}
