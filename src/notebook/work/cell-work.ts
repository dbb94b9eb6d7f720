import type { WorkEnd } from '#machines/notebook-session.ts';
import { type TraceContext, traceparentOf } from '#src/base/tracing/trace-context.ts';
import type { CellResult } from '#src/contract/wire/run.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { NotebookView } from '../open/view.ts';
import type { WorkPlan } from '../open/work-plan.ts';
import { RunRecorder } from './run-recorder.ts';

export interface CellsEnd extends WorkEnd {
  /** How each cell ended, in the order in which they ran. */
  readonly cells: readonly { readonly cellId: string; readonly status: CellResult['status'] }[];
}

export interface CellWorkOptions {
  /** The agent's run that the events belong to. */
  readonly runId: string;
  /** The trace of the agent's tool call. */
  readonly trace: TraceContext | undefined;
  readonly cellIds: readonly string[];
  readonly live: LiveNotebook;
  /** Saves the outputs of the cells that ran. */
  readonly keep: (ran: ReadonlySet<string>) => void;
  readonly resolve: (end: CellsEnd) => void;
}

/**
 * Returns work that runs cells with their present code. The work has no run record, because the record of the agent's prompt
 * contains the agent's actions.
 */
export function cellWork({ runId, trace, cellIds, live, keep, resolve }: CellWorkOptions): WorkPlan {
  const codes = codesOf(cellIds, live.view);
  const recorder = new RunRecorder(cellIds, true);
  return {
    runId,
    trace,
    steps: [
      (kernel) =>
        kernel.execute({
          ...codes,
          fresh: false,
          traceparent: trace && traceparentOf(trace),
        }),
    ],
    follow: (message) => recorder.follow(message, live.view),
    conclude: (done) => recorder.verdict(done, live.view),
    cancelRequested: () => {
      recorder.cancelRequested = true;
    },
    ended(end) {
      const { output } = recorder.output(live.view);
      const cells = output.parts.flatMap((part) =>
        part.type === 'cell-result' ? [{ cellId: part.cellId, status: part.status }] : [],
      );
      keep(recorder.ran);
      resolve({ ...end, cells });
    },
  };
}

/** Returns the code of those of the cells that the notebook has. */
export function codesOf(
  cellIds: readonly string[],
  view: NotebookView,
): { readonly cellIds: readonly string[]; readonly codes: readonly string[] } {
  const ids: string[] = [];
  const codes: string[] = [];
  for (const id of cellIds) {
    const cell = view.get(id);
    if (cell === undefined) continue;
    ids.push(id);
    codes.push(cell.code);
  }
  return { cellIds: ids, codes };
}
