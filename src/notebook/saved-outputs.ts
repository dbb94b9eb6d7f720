/** The last outputs of a notebook's cells, which are stored apart from the notebook. */
import type { WorkspaceId } from '#src/core/ids.ts';
import { type CellOutputRecord, cellOutputRecords } from '#storage/notebooks.ts';
import type { Store } from '#storage/store.ts';
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
