/** Values of DuckDB as cells, and parameters as its values. */
import {
  DuckDBBlobValue,
  type DuckDBType,
  type DuckDBValue,
  type DuckDBValueConverter,
  DuckDBTypeId as Id,
  type Json,
  JsonDuckDBValueConverter,
} from '@duckdb/node-api';
import { type Cell, type Column, type ColumnType, integerCell, type Parameter } from '../rows.ts';

export type CellReader = (value: DuckDBValue) => Cell;

const TYPES = new Map<Id, ColumnType>([
  [Id.BOOLEAN, 'boolean'],
  [Id.TINYINT, 'integer'],
  [Id.SMALLINT, 'integer'],
  [Id.INTEGER, 'integer'],
  [Id.BIGINT, 'integer'],
  [Id.HUGEINT, 'integer'],
  [Id.UTINYINT, 'integer'],
  [Id.USMALLINT, 'integer'],
  [Id.UINTEGER, 'integer'],
  [Id.UBIGINT, 'integer'],
  [Id.UHUGEINT, 'integer'],
  [Id.FLOAT, 'float'],
  [Id.DOUBLE, 'float'],
  [Id.DECIMAL, 'decimal'],
  [Id.VARCHAR, 'text'],
  [Id.ENUM, 'text'],
  [Id.BLOB, 'bytes'],
  [Id.DATE, 'date'],
  [Id.TIME, 'time'],
  [Id.TIME_NS, 'time'],
  [Id.TIME_TZ, 'time'],
  [Id.TIMESTAMP, 'timestamp'],
  [Id.TIMESTAMP_S, 'timestamp'],
  [Id.TIMESTAMP_MS, 'timestamp'],
  [Id.TIMESTAMP_NS, 'timestamp'],
  [Id.TIMESTAMP_TZ, 'timestamptz'],
  [Id.INTERVAL, 'interval'],
  [Id.UUID, 'uuid'],
  [Id.LIST, 'json'],
  [Id.ARRAY, 'json'],
  [Id.STRUCT, 'json'],
  [Id.MAP, 'json'],
  [Id.UNION, 'json'],
]);

export function columnOf(name: string, type: DuckDBType | undefined): Column {
  if (type?.typeId === Id.VARCHAR && type.alias === 'JSON') return { name, type: 'json' };
  return { name, type: TYPES.get(type?.typeId ?? Id.INVALID) ?? 'other' };
}

/** How the values of a column are read. */
export function cellReader(type: DuckDBType): CellReader {
  if (TYPES.get(type.typeId) !== 'json') return scalar;
  return (value) => (value === null ? null : JSON.stringify(jsonOf(value, type, jsonOf)));
}

/** As the library has it, but whole numbers stay numbers where that is exact. */
const jsonOf: DuckDBValueConverter<Json> = (value, type, converter) => {
  const exact = typeof value === 'bigint' ? integerCell(value) : undefined;
  return typeof exact === 'number' ? exact : JsonDuckDBValueConverter(value, type, converter);
};

function scalar(value: DuckDBValue): Cell {
  if (typeof value === 'bigint') return integerCell(value);
  if (value === null || typeof value !== 'object') return value;
  return value instanceof DuckDBBlobValue ? new Uint8Array(value.bytes) : String(value);
}

export function valueFor(parameter: Parameter): DuckDBValue {
  return parameter instanceof Uint8Array ? new DuckDBBlobValue(parameter) : parameter;
}
