import type { CellOutput } from '#src/kernel/messages.ts';
import type { CellOutputRecord } from '#storage/notebooks.ts';
import type { NotebookDocument } from './document.ts';
import { NotebookView } from './view.ts';

/** What is saved of a notebook. */
export interface SavedState {
  readonly document: NotebookDocument;
  /** The last outputs of cells, by their ids. */
  readonly outputs: ReadonlyMap<string, CellOutputRecord>;
}

/** Returns what a notebook shows that no kernel has: its cells are stale and have their last outputs. */
export function savedView({ document, outputs }: SavedState): NotebookView {
  const view = new NotebookView(document.serialization.cells);
  for (const [cellId, saved] of outputs) {
    const cell = view.get(cellId);
    if (cell === undefined) continue;
    view.restore(cell, saved.output as CellOutput | null, saved.console as readonly CellOutput[]);
  }
  return view;
}
