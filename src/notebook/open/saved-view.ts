import type { NotebookDocument } from '../saved/document.ts';
import type { SavedOutput } from '../saved/saved-outputs.ts';
import { NotebookView } from './view.ts';

/** The saved parts of a notebook. */
export interface SavedState {
  readonly document: NotebookDocument;
  /** The last outputs of cells, by their ids. */
  readonly outputs: ReadonlyMap<string, SavedOutput>;
}

/** Returns the view of a notebook without a kernel: its cells are stale and have their last outputs. */
export function savedView({ document, outputs }: SavedState): NotebookView {
  const view = new NotebookView(document.serialization.cells, document.updatedAt);
  for (const [cellId, saved] of outputs) {
    const cell = view.get(cellId);
    if (cell === undefined) continue;
    view.restore(cell, saved.output, saved.console);
  }
  return view;
}
