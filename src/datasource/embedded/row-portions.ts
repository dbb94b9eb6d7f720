/** Rows of an embedded database in portions of a bounded size, because a message to the server is held whole on both sides. */
import { DatasourceFailure } from '../failure.ts';
import { type Cell, ROW_LIMIT_BYTES } from '../rows.ts';

const PORTION_ROWS = 2048;
const PORTION_BYTES = 512 * 1024;

/** The next rows, none at the end. Throws `row_too_large` for a row beyond the limit. */
export async function nextPortion(rows: AsyncIterator<Cell[]> | Iterator<Cell[]>): Promise<Cell[][]> {
  const portion: Cell[][] = [];
  let bytes = 0;
  while (portion.length < PORTION_ROWS && bytes < PORTION_BYTES) {
    const next = rows.next();
    const { done, value } = next instanceof Promise ? await next : next;
    if (done) break;
    const rowBytes = value.reduce((sum: number, cell: Cell) => sum + bytesOf(cell), 0);
    if (rowBytes > ROW_LIMIT_BYTES) throw new DatasourceFailure('row_too_large');
    bytes += rowBytes;
    portion.push(value);
  }
  return portion;
}

function bytesOf(cell: Cell): number {
  if (typeof cell === 'string') return cell.length < 1024 ? cell.length : Buffer.byteLength(cell);
  return cell instanceof Uint8Array ? cell.length : 8;
}
