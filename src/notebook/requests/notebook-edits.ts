import { inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import type { Principal } from '#src/base/caller/principal.ts';
import { invariant } from '#src/base/errors/invariant.ts';
import { isShortJson } from '#src/base/json/json-write.ts';
import { prepareStrings } from '#src/base/json/prepared-strings.ts';
import type { CellChange, ChangeCells, ChangedCells } from '#src/contract/wire/cell-changes.ts';
import type { Cell } from '#src/contract/wire/notebook.ts';
import { reserveMemory } from '#storage/record-memory.ts';
import { requireCurrent } from '../open/current-state.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { LiveNotebooks } from '../open/live-notebooks.ts';
import { preparingCells } from '../saved/cells-json.ts';
import { withConfig } from '../saved/document.ts';
import type { NotebookSessions } from '../sessions/notebook-sessions.ts';
import { nameOf, planCellEdits } from './cell-edits.ts';
import { sizeWith } from './code-memory.ts';

/** Changes of the cells of open notebooks, without a run. These changes make no session busy and wait for no work. */
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
    using _prepared = await prepareStrings(codes, workspaceId);
    const open = this.#liveNotebooks.peek({ workspaceId, id: sessionId });
    const { cellBytes } = sizeWith(
      open,
      request.changes.filter((change) => 'code' in change),
    );
    using _memory = await reserveMemory(cellBytes);
    using _cells = isShortJson(request.changes, MAX_SIZE_AT_ONCE)
      ? undefined
      : await inSlices(preparingCells(savedCells(request.changes, open)), workspaceId);
    return await this.#sessions.whenReadable(workspaceId, sessionId, () => {
      const live = this.#liveNotebooks.of(this.#sessions.toEdit(workspaceId, sessionId));
      const { view } = live;
      const { expectedUpdatedAt, changes: requested } = request;
      const cells = requested.flatMap((change) => (change.type === 'create-cell' ? [] : change));
      requireCurrent(live, { expectedUpdatedAt, cells });
      const { changes, cellIds } = planCellEdits(view, request.changes);
      if (changes.length > 0) {
        const made = live.edit(changes, userId, null);
        invariant(
          made.length === changes.length,
          'A notebook makes all changes of a plan that it has checked.',
        );
      }
      const changed = cellIds.map((cellId) => ({ cellId, version: view.get(cellId)?.version ?? null }));
      return { sessionId, updatedAt: live.document.updatedAt, cells: changed };
    });
  }
}

/** Returns the cells that get new code, as the notebook will have them if nothing else changes them meanwhile. */
function savedCells(changes: readonly CellChange[], open: LiveNotebook | undefined): Cell[] {
  return changes.flatMap((change) => {
    if (change.type === 'create-cell') {
      const { cellId, code, config, name } = change;
      const options = withConfig({}, { ...config, name: nameOf(name ?? '') });
      return cellId == null ? [] : [{ cell_id: cellId, code, options }];
    }
    const cell = change.type === 'set-code' ? open?.view.get(change.cellId) : undefined;
    if (cell === undefined || change.type !== 'set-code') return [];
    return [{ cell_id: change.cellId, code: change.code, options: cell.options }];
  });
}
