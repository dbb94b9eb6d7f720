import type { WorkEnd } from '#machines/notebook-session.ts';
import type { ElementCommand } from '#src/confined/processes/kernel/kernel.ts';
import type { ElementFailure, KernelMessage } from '#src/confined/processes/kernel/messages.ts';
import type { CellResult } from '#src/contract/wire/run.ts';
import type { Store } from '#storage/store.ts';
import type { LiveNotebook } from '../open/live-notebook.ts';
import type { WorkPlan } from '../open/work-plan.ts';
import { keepOutputs } from '../saved/saved-outputs.ts';
import { RESULT_OF } from './run-recorder.ts';

/** How the work of a command of a UI element has ended. */
export interface ElementEnd extends WorkEnd {
  /** The cells that ran, in the order in which they began, with their ends. */
  readonly cells: readonly { readonly cellId: string; readonly status: CellResult['status'] }[];
  /** The ids for which the kernel has no element. */
  readonly unknown: readonly string[];
  /** The elements that failed as their value was set. */
  readonly failures: readonly ElementFailure[];
}

export interface ElementWorkOptions {
  /** Makes the command at the moment when the kernel takes it. */
  readonly command: () => ElementCommand;
  readonly live: LiveNotebook;
  readonly store: Store;
  /** Takes the messages that the kernel sends during this work. */
  readonly follow?: (message: KernelMessage) => void;
  readonly resolve: (end: ElementEnd) => void;
}

/**
 * Returns the work of a command of a UI element. The value of the element changes, cells that depend on it run, and their outputs
 * are saved. The work has no run record.
 */
export function elementWork({ command, live, store, follow, resolve }: ElementWorkOptions): WorkPlan {
  const ran = new Set<string>();
  let ofElements: Pick<ElementEnd, 'unknown' | 'failures'> = { unknown: [], failures: [] };
  const statusOf = (cellId: string) => RESULT_OF[live.view.get(cellId)?.ended ?? 'cancelled'];
  return {
    runId: null,
    steps: [(kernel) => kernel.element(command())],
    follow(message) {
      follow?.(message);
      const hasRun = message.op === 'execution' && message.phase === 'running';
      if (hasRun && live.view.get(message.cellId) !== undefined) ran.add(message.cellId);
    },
    conclude: (done) => {
      ofElements = { unknown: done.unknown ?? [], failures: done.failures ?? [] };
      if (done.interrupted) return { status: 'cancelled', failure: null };
      return { status: done.error === null ? 'completed' : 'failed', failure: null };
    },
    cancelRequested: () => undefined,
    ended(end) {
      if (ran.size > 0) keepOutputs(store, live, ran);
      const cells = [...ran].map((cellId) => ({ cellId, status: statusOf(cellId) }));
      resolve({ ...end, ...ofElements, cells });
    },
  };
}
