import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ResultColumn, RowBatch, RowValue } from '../../rows.ts';

const BATCH_ROWS = 1000;

/**
 * Yields the rows of one page, which may have megabytes, in batches that each take little time.
 * Yields at least one batch.
 */
export async function* inBatches(
  columns: readonly ResultColumn[],
  page: readonly unknown[],
  cellsOf: (row: unknown) => RowValue[],
): AsyncGenerator<RowBatch> {
  for (let at = 0; at === 0 || at < page.length; at += BATCH_ROWS) {
    if (at > 0) await nextTurn();
    yield { columns, rows: page.slice(at, at + BATCH_ROWS).map(cellsOf) };
  }
}
