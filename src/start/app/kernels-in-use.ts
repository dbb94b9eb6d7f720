import type { WorkspaceId } from '#src/base/ids.ts';
import type { LiveNotebooks } from '#src/notebook/open/live-notebooks.ts';
import type { NotebookSessionActors } from '#src/notebook/sessions/notebook-session-actors.ts';
import type { KernelWithProcess } from '#src/operate/operators/kernel-usage.ts';

/** The kernels of the notebook sessions in this worker. */
export class KernelsInUse {
  readonly #actors: NotebookSessionActors;
  readonly #liveNotebooks: LiveNotebooks;

  constructor(actors: NotebookSessionActors, liveNotebooks: LiveNotebooks) {
    this.#actors = actors;
    this.#liveNotebooks = liveNotebooks;
  }

  /** Returns the workspaces in which kernels live, some more than once. */
  workspaces(): readonly WorkspaceId[] {
    return this.#actors.residents().map(({ workspaceId }) => workspaceId);
  }

  /** Returns the sessions of a workspace whose kernels have a process. */
  sessionsOf(workspaceId: WorkspaceId): readonly string[] {
    return [...this.#liveNotebooks.all()]
      .filter((live) => live.workspaceId === workspaceId && live.kernel?.pid != null)
      .map(({ sessionId }) => sessionId);
  }

  /** Yields the kernels that have a process. */
  *processes(): Iterable<KernelWithProcess> {
    for (const { workspaceId, sessionId, kernel } of this.#liveNotebooks.all()) {
      const pid = kernel?.pid ?? null;
      if (pid !== null) yield { workspaceId, sessionId, pid, node: kernel?.node ?? null };
    }
  }
}
