import type { CellEdits } from '#src/confined/processes/kernel/kernel.ts';
import type { DocumentChange, KernelCellConfig } from '#src/confined/processes/kernel/messages.ts';

/**
 * The edits that a kernel has not got yet, because it works or starts. A later edit of a cell
 * replaces an earlier one, so the edits take no more memory than the notebook.
 */
export class PendingEdits {
  #codes = new Map<string, string>();
  #configs = new Map<string, KernelCellConfig>();
  #deleted = new Set<string>();
  #created = new Set<string>();

  add(changes: readonly DocumentChange[]): void {
    for (const change of changes) {
      switch (change.type) {
        case 'create-cell':
          if (!this.#deleted.delete(change.cellId)) this.#created.add(change.cellId);
          this.#codes.set(change.cellId, change.code);
          this.#configs.set(change.cellId, change.config);
          break;
        case 'set-code':
          this.#codes.set(change.cellId, change.code);
          break;
        case 'set-config':
          this.#configs.set(change.cellId, change.config);
          break;
        case 'delete-cell':
          this.#codes.delete(change.cellId);
          this.#configs.delete(change.cellId);
          if (!this.#created.delete(change.cellId)) this.#deleted.add(change.cellId); // the kernel knows no other
          break;
        default: // names and the order of cells mean nothing to a kernel
      }
    }
  }

  /**
   * Notes changes that the kernel has made itself, later than these edits. Its code replaces the code of an edit. An edit of a
   * cell that the kernel has deleted is dropped, because it would make the cell again. `configOf` returns the settings of a cell
   * after all changes.
   */
  overtakenBy(changes: readonly DocumentChange[], configOf: (cellId: string) => KernelCellConfig): void {
    for (const change of changes) {
      if (change.type === 'set-code') this.#codes.delete(change.cellId);
      else if (change.type === 'set-config') {
        if (this.#configs.has(change.cellId)) this.#configs.set(change.cellId, configOf(change.cellId));
      } else if (change.type === 'delete-cell') {
        this.#codes.delete(change.cellId);
        this.#configs.delete(change.cellId);
        this.#created.delete(change.cellId);
      }
    }
  }

  /** Returns all edits and forgets them; undefined when there are none. */
  take(): CellEdits | undefined {
    const [codes, configs, deleted] = [this.#codes, this.#configs, this.#deleted];
    this.#created.clear();
    if (codes.size + configs.size + deleted.size === 0) return undefined;
    this.#codes = new Map();
    this.#configs = new Map();
    this.#deleted = new Set();
    return {
      codes: Object.fromEntries(codes),
      configs: Object.fromEntries(configs),
      deleteIds: [...deleted],
    };
  }
}
