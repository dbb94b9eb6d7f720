import type { CellError } from '#src/confined/processes/kernel/messages.ts';
import type { WorkPlan } from '../open/work-plan.ts';

/** Structural errors by cell, for the requested cells and all cells that these depend on. */
export type StructuralErrors = ReadonlyMap<string, readonly CellError[]>;

/** The reason for a missing result: the kernel was lost during the check, or the work was interrupted. */
export type UnfinishedCheck = 'lost' | 'interrupted';

/**
 * Returns work that asks the kernel which structural errors other code would cause: `codes` by the ids of their cells. The
 * notebook does not change.
 */
export function structureWork(
  codes: Readonly<Record<string, string>>,
  cellIds: readonly string[],
  resolve: (found: StructuralErrors | UnfinishedCheck) => void,
): WorkPlan {
  let errors: StructuralErrors | undefined;
  let isInterrupted = false;
  return {
    runId: null,
    steps: [(kernel) => kernel.findErrors({ codes, cellIds })],
    follow: (message) => {
      if (message.op === 'bridge-judged') errors = message.errors;
    },
    conclude: () => {
      errors ??= new Map(); // the kernel could not check; if the code has a mistake, the run reports it
      return { status: 'completed', failure: null };
    },
    cancelRequested: () => {
      isInterrupted = true;
    },
    ended: () => resolve(isInterrupted ? 'interrupted' : (errors ?? 'lost')),
  };
}
