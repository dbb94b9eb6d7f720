/**
 * Deletes earlier versions of notebooks whose retention time is over. Each step is one small commit. In a server of
 * several workers, each deletes only the versions of notebooks whose home it is.
 */
import type { WorkspaceId } from '#src/base/ids.ts';
import { notebookVersionContents, notebookVersions } from '#storage/records/notebooks.ts';
import type { Store } from '#storage/store.ts';

/** How many notebooks one step examines. */
const MAX_NOTEBOOKS = 20;

export class VersionRetention {
  readonly #store: Store;
  readonly #owns: (workspaceId: string, notebookId: string) => boolean;

  /** Only versions of notebooks that `owns` returns true for are deleted. */
  constructor(store: Store, owns: (workspaceId: string, notebookId: string) => boolean = () => true) {
    this.#store = store;
    this.#owns = owns;
  }

  /**
   * Deletes versions of some notebooks, beginning after the notebook `after`. Only versions that
   * were replaced before `ms` (since 1970) are deleted. Returns where the next step continues;
   * undefined when there are no more.
   */
  deleteBefore(workspaceId: WorkspaceId, ms: number, after: string | undefined): string | undefined {
    const before = new Date(ms).toISOString();
    const page = { after, limit: MAX_NOTEBOOKS };
    const ids = [...this.#store.list(notebookVersions, workspaceId, [], page)].map(({ id }) => id);
    this.#store.write((tx) => {
      for (const id of ids.filter((each) => this.#owns(workspaceId, each))) {
        const entries = tx.get(notebookVersions, workspaceId, id) ?? [];
        const kept = entries.filter(({ replacedAt }) => replacedAt >= before);
        if (kept.length === entries.length) continue;
        for (const { updatedAt, replacedAt } of entries)
          if (replacedAt < before) tx.remove(notebookVersionContents, workspaceId, id, updatedAt);
        if (kept.length === 0) tx.remove(notebookVersions, workspaceId, id);
        else tx.put(notebookVersions, kept, workspaceId, id);
      }
    });
    return ids.length < MAX_NOTEBOOKS ? undefined : ids.at(-1);
  }
}
