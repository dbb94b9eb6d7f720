import { AppError } from '#src/core/errors.ts';
import type { CellError } from '#src/kernel/messages.ts';
import type { WorkPlan } from './work.ts';

/** Structural errors by cell, of the cells that were asked about and all they depend on. */
export type Judgement = ReadonlyMap<string, readonly CellError[]>;

export interface CheckWorkOptions {
  /** Code that is to replace the code of cells. */
  readonly codes: Readonly<Record<string, string>>;
  readonly cellIds: readonly string[];
  readonly resolve: (judgement: Judgement) => void;
  readonly reject: (error: Error) => void;
}

/** Asks the kernel which structural errors there would be with other code. The notebook does not change. */
export function checkWork({ codes, cellIds, resolve, reject }: CheckWorkOptions): WorkPlan {
  let judgement: Judgement | undefined;
  return {
    runId: null,
    steps: [(kernel) => kernel.command('edit-cells', { codes, configs: {}, deleteIds: [], judge: cellIds })],
    follow: (message) => {
      if (message.op === 'bridge-judged') judgement = message.errors;
    },
    judge: () => ({ status: 'completed', failure: null }),
    cancelRequested: () => undefined,
    ended: ({ failure }) => {
      if (judgement !== undefined) resolve(judgement);
      else
        reject(
          new AppError(
            'session_not_ready',
            failure?.message ?? 'The kernel was lost while it judged the code.',
          ),
        );
    },
  };
}
