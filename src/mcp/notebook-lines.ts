import { untilAborted } from '#src/base/async/until-aborted.ts';
import { AppError } from '#src/base/errors/errors.ts';

/** The most calls that may wait for one notebook. */
const MAX_WAITING = 100;

interface Line {
  last: Promise<unknown>;
  length: number;
}

/**
 * Makes calls that need the same notebook wait for each other, in their order. A model may make such calls in
 * parallel. Each worker has lines of its own: calls in different workers meet at the session, which refuses one of
 * them, and that call tries again.
 */
export class NotebookLines {
  readonly #lines = new Map<string, Line>();

  /**
   * Runs the work when the work before it has ended. If the signal aborts first, rejects with its reason and does not
   * run the work.
   */
  async pass<T>(notebook: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(notebook) ?? { last: Promise.resolve(), length: 0 };
    if (line.length > MAX_WAITING)
      throw new AppError('session_busy', `More than ${MAX_WAITING} calls wait for this notebook.`);
    this.#lines.set(notebook, line);
    line.length++;
    const before = line.last;
    let leave = () => {};
    const own = new Promise<void>((resolve) => {
      leave = resolve;
    });
    line.last = before.then(() => own);
    try {
      await untilAborted(before, signal);
      return await work();
    } finally {
      leave();
      line.length--;
      if (line.length === 0) this.#lines.delete(notebook);
    }
  }
}
