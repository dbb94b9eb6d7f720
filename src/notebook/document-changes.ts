import type { DocumentChange } from '#src/kernel/messages.ts';
import { isCellId, withConfig } from './document.ts';
import type { NotebookView, ViewCell } from './view.ts';

const MAX_NAME_CHARS = 1000;

export interface AppliedChanges {
  /** New cells, and those whose code, name or settings changed. */
  readonly registered: readonly ViewCell[];
  readonly deleted: readonly string[];
  readonly reordered: boolean;
}

/**
 * Applies one document transaction of the kernel to the view, as a whole. Changes of cells that are not there, and new
 * cells with ids that no client could give, are passed over, and so is what a notebook has no room for: the kernel's
 * process is not trusted.
 */
export function applyTransaction(view: NotebookView, changes: readonly DocumentChange[]): AppliedChanges {
  const before = view.cells.map((cell) => cell.id).join('\n');
  const registered = new Map<string, ViewCell>();
  const deleted: string[] = [];
  for (const change of changes) {
    if (change.type === 'reorder-cells') {
      view.reorder(change.cellIds);
      continue;
    }
    if (change.type === 'create-cell') {
      const isFree = view.get(change.cellId) === undefined && view.hasRoomFor(change.code.length, true);
      if (!isFree || !isCellId(change.cellId) || change.name.length > MAX_NAME_CHARS) continue;
      const options = withConfig({}, { ...change.config, name: change.name });
      registered.set(change.cellId, view.add(change.cellId, change.code, options));
      place(view, change.cellId, change);
      continue;
    }
    const cell = view.get(change.cellId);
    if (cell === undefined) continue;
    switch (change.type) {
      case 'delete-cell':
        view.remove(change.cellId);
        registered.delete(change.cellId);
        deleted.push(change.cellId);
        break;
      case 'move-cell':
        place(view, change.cellId, change);
        break;
      case 'set-code':
        if (!view.hasRoomFor(change.code.length - cell.code.length, false)) break;
        view.setCode(cell, change.code);
        registered.set(cell.id, cell);
        break;
      case 'set-name':
        if (change.name.length > MAX_NAME_CHARS) break;
        cell.options = withConfig(cell.options, { name: change.name });
        registered.set(cell.id, cell);
        break;
      case 'set-config':
        cell.options = withConfig(cell.options, change.config);
        registered.set(cell.id, cell);
        break;
    }
  }
  const reordered = before !== view.cells.map((cell) => cell.id).join('\n');
  return { registered: [...registered.values()], deleted, reordered };
}

function place(
  view: NotebookView,
  cellId: string,
  { before, after }: { readonly before: string | null; readonly after: string | null },
): void {
  const order = view.cells.map((cell) => cell.id).filter((id) => id !== cellId);
  const anchor = before ?? after;
  const at = anchor === null ? -1 : order.indexOf(anchor);
  if (at === -1) return;
  order.splice(before === null ? at + 1 : at, 0, cellId);
  view.reorder(order);
}
