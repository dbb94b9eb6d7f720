/** The last outputs of a notebook's cells, which are stored apart from the notebook. */
import type { WorkspaceId } from '#src/core/ids.ts';
import { type CellOutputRecord, cellOutputRecords } from '#storage/notebooks.ts';
import type { Store, Transaction } from '#storage/store.ts';
import type { SavedCell } from './document.ts';

/** The saved outputs of `cells`, read one by one: the caller stops when it has enough. Those of other code are not given. */
export function* outputsOf(
  store: Store,
  workspaceId: WorkspaceId,
  notebookId: string,
  cells: readonly SavedCell[],
): Generator<readonly [cellId: string, CellOutputRecord]> {
  for (const { cell_id, code } of cells) {
    const record = store.get(cellOutputRecords, workspaceId, notebookId, cell_id);
    if (record?.code === code) yield [cell_id, record];
  }
}

/** More than the cells of any notebook, today's and earlier ones. */
const MAX_REMOVED_RECORDS = 50_000;

/** Removes all of them, those of deleted cells too. Reads no output. */
export function removeOutputs(
  store: Store,
  tx: Transaction,
  workspaceId: WorkspaceId,
  notebookId: string,
  cells: readonly SavedCell[],
): void {
  const committed = store.listKeys(cellOutputRecords, workspaceId, [notebookId], MAX_REMOVED_RECORDS);
  // The list does not show what is written and not committed yet.
  const cellIds = new Set([
    ...cells.map((cell) => cell.cell_id),
    ...[...committed].flatMap((ids) => ids.at(-1) ?? []),
  ]);
  for (const cellId of cellIds) tx.remove(cellOutputRecords, workspaceId, notebookId, cellId);
}
