import { prepareStrings } from '#src/core/json/prepared-strings.ts';
import type { Principal } from '#src/core/principal.ts';
import type { ChangeCells, ChangedCells } from '#src/wire/cell-changes.ts';
import { reserveMemory } from '#storage/record-memory.ts';
import { planCellEdits } from './cell-edits.ts';
import { sizeWith } from './code-memory.ts';
import { requireCurrent } from './current-state.ts';
import type { LiveNotebooks } from './live-notebooks.ts';
import type { NotebookSessions } from './notebook-sessions.ts';

/** Changes of the cells of open notebooks, without a run. They make no session busy and wait for no work. */
export class NotebookEdits {
  readonly #sessions: NotebookSessions;
  readonly #liveNotebooks: LiveNotebooks;

  constructor(sessions: NotebookSessions, liveNotebooks: LiveNotebooks) {
    this.#sessions = sessions;
    this.#liveNotebooks = liveNotebooks;
  }

  /**
   * Makes all changes in one turn, or none. Rejects with the errors of `NotebookSessions.toEdit`, with `stale_update`, which carries
   * the present versions, and with those of `planCellEdits`.
   */
  async change(
    { workspaceId, userId }: Pick<Principal, 'workspaceId' | 'userId'>,
    sessionId: string,
    request: ChangeCells,
  ): Promise<ChangedCells> {
    const codes = request.changes.flatMap((change) => ('code' in change ? change.code : []));
    using _prepared = await prepareStrings(codes);
    const open = this.#liveNotebooks.peek({ workspaceId, id: sessionId });
    const { cellBytes } = sizeWith(
      open,
      request.changes.filter((change) => 'code' in change),
    );
    using _memory = await reserveMemory(cellBytes);
    return await this.#sessions.whenReadable(workspaceId, sessionId, () => {
      const live = this.#liveNotebooks.of(this.#sessions.toEdit(workspaceId, sessionId));
      const { view } = live;
      const { expectedUpdatedAt, changes: requested } = request;
      const cells = requested.flatMap((change) => (change.type === 'create-cell' ? [] : change));
      requireCurrent(live, { expectedUpdatedAt, cells });
      const { changes, cellIds } = planCellEdits(view, request.changes);
      if (changes.length > 0) {
        const made = live.edit(changes, userId, null);
        if (made.length < changes.length)
          throw new Error('The notebook has refused changes that it could make.');
      }
      const changed = cellIds.map((cellId) => ({ cellId, version: view.get(cellId)?.version ?? null }));
      return { sessionId, updatedAt: live.document.updatedAt, cells: changed };
    });
  }
}
