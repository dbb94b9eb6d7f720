/** Values of BigQuery's REST API: text in a member `v`, structures in a member `f`. */

import {
  type ColumnType,
  integerCell,
  type Parameter,
  type ResultColumn,
  type RowValue,
} from '../../rows.ts';
import { listMember, memberOf, textMember } from '../http/answer-members.ts';

const TYPES: Readonly<Record<string, ColumnType>> = {
  BOOL: 'boolean',
  BOOLEAN: 'boolean',
  INT64: 'integer',
  INTEGER: 'integer',
  FLOAT: 'float',
  FLOAT64: 'float',
  NUMERIC: 'decimal',
  BIGNUMERIC: 'decimal',
  STRING: 'text',
  BYTES: 'bytes',
  DATE: 'date',
  TIME: 'time',
  DATETIME: 'timestamp',
  TIMESTAMP: 'timestamptz',
  INTERVAL: 'interval',
  JSON: 'json',
  RECORD: 'json',
  STRUCT: 'json',
};

/** Returns the column for one entry of a result's schema. */
export function bigqueryColumn(field: unknown): ResultColumn {
  return { name: textMember(field, 'name') ?? '', type: isRepeated(field) ? 'json' : typeOf(field) };
}

/** Returns the cells of one row. Repeated fields and records become JSON text. */
export function bigqueryValues(row: unknown, fields: readonly unknown[]): RowValue[] {
  const values = listMember(row, 'f');
  return fields.map((field, at) => {
    const value = memberOf(values[at], 'v');
    if (isRepeated(field) || isRecord(field)) return JSON.stringify(plainOf(value, field));
    return scalarOf(value, typeOf(field));
  });
}

function typeOf(field: unknown): ColumnType {
  return TYPES[textMember(field, 'type') ?? ''] ?? 'other';
}

function isRepeated(field: unknown): boolean {
  return textMember(field, 'mode') === 'REPEATED';
}

function isRecord(field: unknown): boolean {
  return ['RECORD', 'STRUCT'].includes(textMember(field, 'type') ?? '');
}

function scalarOf(value: unknown, type: ColumnType): RowValue {
  if (typeof value !== 'string') return null;
  if (type === 'integer') return integerCell(value);
  if (type === 'float') return Number(value);
  if (type === 'boolean') return value === 'true';
  if (type === 'bytes') return new Uint8Array(Buffer.from(value, 'base64'));
  if (type === 'timestamptz') return instantOf(value);
  return type === 'timestamp' ? value.replace('T', ' ') : value;
}

/** Returns lists and structures as plain JSON values. */
function plainOf(value: unknown, field: unknown): unknown {
  if (isRepeated(field)) {
    const items = Array.isArray(value) ? value : [];
    return items.map((item) => plainItem(memberOf(item, 'v'), field));
  }
  return plainItem(value, field);
}

function plainItem(value: unknown, field: unknown): unknown {
  if (isRecord(field)) {
    const values = listMember(value, 'f');
    const members = listMember(field, 'fields').map((member, at) => {
      return [textMember(member, 'name') ?? '', plainOf(memberOf(values[at], 'v'), member)] as const;
    });
    return value === null || value === undefined ? null : Object.fromEntries(members);
  }
  const cell = scalarOf(value, typeOf(field));
  if (typeof cell === 'bigint') return String(cell);
  return cell instanceof Uint8Array ? Buffer.from(cell).toString('base64') : cell;
}

/** Returns date and time of microseconds since 1970. */
function instantOf(micros: string): string {
  const whole = BigInt(micros);
  const rest = ((whole % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const text = new Date(Number((whole - rest) / 1000n)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)}.${String(rest).padStart(6, '0')}+00:00`;
}

/** Returns a query parameter of the REST API. */
export function bigqueryParameter(value: Parameter): object {
  const [type, text] = typedText(value);
  return { parameterType: { type }, parameterValue: text === null ? {} : { value: text } };
}

function typedText(value: Parameter): readonly [string, string | null] {
  if (value === null) return ['STRING', null];
  if (value instanceof Uint8Array) return ['BYTES', Buffer.from(value).toString('base64')];
  if (typeof value === 'boolean') return ['BOOL', String(value)];
  if (typeof value === 'bigint') return ['INT64', String(value)];
  return [typeof value === 'number' ? 'FLOAT64' : 'STRING', String(value)];
}
