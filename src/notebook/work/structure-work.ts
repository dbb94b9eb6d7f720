import { AppError } from '#src/core/errors.ts';
import type { CellError } from '#src/kernel/messages.ts';
import type { WorkPlan } from './work-plan.ts';

/** Structural errors by cell: of the cells that were asked about and of all cells that these depend on. */
export type StructuralErrors = ReadonlyMap<string, readonly CellError[]>;

export interface StructureWorkOptions {
  /** New code of cells, by cell id. */
  readonly codes: Readonly<Record<string, string>>;
  readonly cellIds: readonly string[];
  readonly resolve: (errors: StructuralErrors) => void;
  /** Called with `session_not_ready` when the kernel is lost before it has answered. */
  readonly reject: (error: Error) => void;
}

/** Returns work that asks the kernel which structural errors other code would bring. The notebook does not change. */
export function structureWork({ codes, cellIds, resolve, reject }: StructureWorkOptions): WorkPlan {
  let errors: StructuralErrors | undefined;
  return {
    runId: null,
    steps: [(kernel) => kernel.command('edit-cells', { codes, configs: {}, deleteIds: [], judge: cellIds })],
    follow: (message) => {
      if (message.op === 'bridge-judged') errors = message.errors;
    },
    conclude: () => ({ status: 'completed', failure: null }),
    cancelRequested: () => undefined,
    ended: ({ failure }) => {
      if (errors !== undefined) resolve(errors);
      else {
        const detail = failure?.message ?? 'The kernel was lost while it checked the code.';
        reject(new AppError('session_not_ready', detail));
      }
    },
  };
}
