/**
 * An open notebook as its event stream describes it. The view neither wakes the notebook nor keeps it awake.
 */
import { useSignal } from '@preact/signals';
import type { NotebookStreamEvent } from '#src/contract/wire/events.ts';
import type { Notebook } from '#src/contract/wire/notebook.ts';
import type { Output } from '#src/contract/wire/output.ts';
import { useClient } from './data.ts';
import { withPrinted } from './printed.ts';
import { useWhileSeen } from './while-seen.ts';

export interface LiveCell {
  readonly cellId: string;
  readonly name: string | null;
  readonly code: string;
  readonly status: string;
  readonly isStale: boolean;
  readonly output: Output | null;
  readonly printed: readonly Output[];
}

export interface FollowedNotebook {
  readonly order: readonly string[];
  readonly cells: ReadonlyMap<string, LiveCell>;
  /** The run in flight. */
  readonly runId: string | null;
  readonly failure: { readonly code: string; readonly message: string } | null;
}

const NOTHING: FollowedNotebook = { order: [], cells: new Map(), runId: null, failure: null };

/** Returns the notebook as it is now, for as long as the component is shown. */
export function useNotebook(id: string): {
  readonly notebook: FollowedNotebook | undefined;
  readonly error: unknown;
} {
  const client = useClient();
  const notebook = useSignal<FollowedNotebook | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  useWhileSeen(
    async (signal) => {
      let present = NOTHING;
      let isScheduled = false;
      try {
        for await (const event of client.notebookSessions.follow(id, { signal, observe: true })) {
          error.value = undefined;
          present = after(present, event);
          if (isScheduled) continue;
          isScheduled = true;
          // Many events in one frame cause one change of the page.
          requestAnimationFrame(() => {
            isScheduled = false;
            if (!signal.aborted) notebook.value = present;
          });
        }
        // A closed session has no stream, but its notebook can still be read.
        if (present === NOTHING) {
          notebook.value = savedNotebook(await client.notebooks.get(id, { signal }));
          error.value = undefined;
        }
      } catch (reason) {
        if (!signal.aborted) error.value = reason;
        throw reason;
      }
    },
    [id],
  );
  return { notebook: notebook.value, error: error.value };
}

function savedNotebook({ serialization: { cells } }: Notebook): FollowedNotebook {
  return {
    ...NOTHING,
    order: cells.map(({ cell_id }) => cell_id),
    cells: new Map(cells.map(({ cell_id, code }) => [cell_id, { ...blank(cell_id), code, isStale: true }])),
  };
}

function after(before: FollowedNotebook, event: NotebookStreamEvent): FollowedNotebook {
  switch (event.type) {
    case 'session.snapshot':
      return { ...NOTHING, runId: event.data.currentRunId, failure: event.data.error };
    case 'session.status':
      return event.data.status === 'failed' ? before : { ...before, failure: null };
    case 'cells-registered': {
      const cells = new Map(before.cells);
      for (const { cellId, name, code } of event.data.cells)
        cells.set(cellId, { ...blank(cellId), ...cells.get(cellId), name, code });
      return { ...before, cells, order: event.data.order };
    }
    case 'cells-deleted': {
      const cells = new Map(before.cells);
      for (const cellId of event.data.cellIds) cells.delete(cellId);
      return { ...before, cells, order: before.order.filter((cellId) => cells.has(cellId)) };
    }
    case 'cell-op': {
      const { cellId, status, stale, output, console: printed } = event.data;
      const cell = before.cells.get(cellId);
      if (cell === undefined) return before;
      return withCell(before, {
        ...cell,
        ...(status !== undefined && { status }),
        ...(stale !== undefined && { isStale: stale }),
        ...(output !== undefined && { output }),
        ...(printed !== undefined && {
          printed: printed.length === 0 ? [] : withPrinted(cell.printed, printed),
        }),
      });
    }
    case 'console-output': {
      const { cellId, channel, text } = event.data;
      const cell = before.cells.get(cellId);
      if (cell === undefined) return before;
      return withCell(before, {
        ...cell,
        printed: withPrinted(cell.printed, [{ channel, mimetype: 'text/plain', data: text }]),
      });
    }
    case 'run-status':
      return { ...before, runId: event.data.status === 'running' ? event.data.runId : null };
    default:
      return before;
  }
}

function blank(cellId: string): LiveCell {
  return {
    cellId,
    name: null,
    code: '',
    status: 'idle',
    isStale: false,
    output: null,
    printed: [],
  };
}

function withCell(notebook: FollowedNotebook, cell: LiveCell): FollowedNotebook {
  return { ...notebook, cells: new Map(notebook.cells).set(cell.cellId, cell) };
}
