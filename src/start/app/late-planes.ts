import type { NotebookAgents } from '#src/notebook/sessions/notebook-context.ts';
import type { NotebookSessions } from '#src/notebook/sessions/notebook-sessions.ts';
import type { KernelsInUse } from './kernels-in-use.ts';

/** The parts that others, which are opened before them, call once everything is open. */
export interface LatePlanes {
  readonly agents: NotebookAgents;
  readonly kernelsInUse: KernelsInUse;
  readonly sessions: NotebookSessions;
}

/** The late planes: `fill` is called once, when all are open. Reading one before that is a mistake in the order, and throws. */
export class Late {
  #planes: LatePlanes | undefined;

  fill(planes: LatePlanes): void {
    if (this.#planes !== undefined) throw new Error('The late planes are filled once.');
    this.#planes = planes;
  }

  get planes(): LatePlanes {
    if (this.#planes === undefined) throw new Error('A plane was called before all planes were open.');
    return this.#planes;
  }
}
