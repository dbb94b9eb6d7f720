/** Turns edits of cells, in the form that models write, into changes of an open notebook. */
import type { CellChange } from '#src/contract/wire/cell-changes.ts';

/**
 * An edit. `version` is the version of the cell that the model has read. So an edit never overwrites text that the
 * model has not seen.
 */
export type CellEdit =
  | { readonly type: 'create'; readonly code: string; readonly name?: string; readonly after?: string }
  | { readonly type: 'replace'; readonly cellId: string; readonly version: number; readonly code: string }
  | { readonly type: 'delete'; readonly cellId: string; readonly version: number }
  | { readonly type: 'move'; readonly cellId: string; readonly after: string };

/** marimo's name of the cell that runs before all others. It is also the id of that cell. */
const SETUP = 'setup';

/** Returns the change that makes an edit. */
export function changeOf(edit: CellEdit): CellChange {
  switch (edit.type) {
    case 'create': {
      const { type: _, ...cell } = edit;
      return { type: 'create-cell', ...cell, ...(edit.name === SETUP ? { cellId: SETUP } : {}) };
    }
    case 'replace':
      return { ...edit, type: 'set-code' };
    case 'delete':
      return { ...edit, type: 'delete-cell' };
    case 'move':
      return { ...edit, type: 'move-cell' };
  }
}
