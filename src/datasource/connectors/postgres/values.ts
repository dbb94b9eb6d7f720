/** Types of PostgreSQL, and how their text becomes cells. */
import type { CustomTypesConfig } from 'pg';
import {
  type ColumnType,
  integerCell,
  type Parameter,
  type ResultColumn,
  type RowValue,
} from '../../rows.ts';

type Parser = (text: string) => RowValue;

const asText: Parser = (text) => text;
const asInteger: Parser = (text) => integerCell(text);
const asBytes: Parser = (text) => new Uint8Array(Buffer.from(text.slice(2), 'hex'));

/** Types by their object id, which is fixed for built-in types. */
const TYPES = new Map<number, readonly [ColumnType, Parser]>([
  [16, ['boolean', (text) => text === 't']],
  [17, ['bytes', asBytes]],
  [20, ['integer', asInteger]],
  [21, ['integer', Number]],
  [23, ['integer', Number]],
  [26, ['integer', Number]],
  [700, ['float', Number]],
  [701, ['float', Number]],
  [1700, ['decimal', asText]],
  [18, ['text', asText]],
  [19, ['text', asText]],
  [25, ['text', asText]],
  [1042, ['text', asText]],
  [1043, ['text', asText]],
  [1082, ['date', asText]],
  [1083, ['time', asText]],
  [1114, ['timestamp', asText]],
  [1184, ['timestamptz', asText]],
  [1186, ['interval', asText]],
  [2950, ['uuid', asText]],
  [114, ['json', asText]],
  [3802, ['json', asText]],
]);

const parserOf = (dataTypeID: number): Parser => TYPES.get(dataTypeID)?.[1] ?? asText;

/** Parsers for the driver. A value stays text where no JavaScript value holds it exactly. */
export const PARSERS: CustomTypesConfig = { getTypeParser: parserOf };

/** A column in a `RowDescription` message. */
export interface Field {
  readonly name: string;
  readonly dataTypeID: number;
}

/** Returns the column for a field. */
export function postgresColumn({ name, dataTypeID }: Field): ResultColumn {
  return { name, type: TYPES.get(dataTypeID)?.[0] ?? 'other' };
}

/** Returns the parser of each field. */
export function parsersOf(fields: readonly Field[]): Parser[] {
  return fields.map(({ dataTypeID }) => parserOf(dataTypeID));
}

/** Returns a parameter as the driver takes it. */
export function parameterFor(parameter: Parameter): unknown {
  return parameter instanceof Uint8Array ? Buffer.from(parameter) : parameter;
}
