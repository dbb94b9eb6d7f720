/**
 * Batches of PostgreSQL rows. They hold the bytes that the server sent, which become cells only
 * when a reader asks for cells.
 */
import type { RowBatch, RowValue } from '../../rows.ts';
import { packColumns } from './columns.ts';
import { jsonOf } from './json.ts';
import { MESSAGE_HEAD_BYTES } from './messages.ts';
import { type Field, parsersOf, postgresColumn } from './values.ts';

/** Returns the batch of these parts: `rowCount` whole `DataRow` messages in all. The batch owns them from now on. */
export function postgresBatch(
  fields: readonly Field[],
  parts: readonly Buffer[],
  rowCount: number,
): RowBatch {
  const columns = fields.map(postgresColumn);
  let rows: (readonly RowValue[])[] | undefined;
  return {
    columns,
    rowCount,
    get rows() {
      rows ??= cellsOf(parts, fields);
      return rows;
    },
    json: () => jsonOf(columns, parts),
    packed: () => packColumns(columns, parts, rowCount),
  };
}

function cellsOf(parts: readonly Buffer[], fields: readonly Field[]): RowValue[][] {
  const parsers = parsersOf(fields);
  const rows: RowValue[][] = [];
  for (const bytes of parts) {
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + bytes.readUInt32BE(at + 1);
      let value = at + MESSAGE_HEAD_BYTES + 2;
      const row = parsers.map((parse): RowValue => {
        const length = value + 4 <= end ? bytes.readInt32BE(value) : -1;
        value += 4;
        // A wrong length from the server must not reach beyond its row.
        if (length < 0 || value + length > end) return null;
        value += length;
        return parse(bytes.toString('utf8', value - length, value));
      });
      rows.push(row);
      at = end;
    }
  }
  return rows;
}
