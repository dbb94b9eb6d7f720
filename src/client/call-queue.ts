import { unlessAborted } from './abort.ts';

/** Queues the calls of one session: each begins when the preceding call is over, so that none is refused with `session_busy`. */
export class CallQueue {
  /** Resolves, once it is asked, when the last call is over. */
  #last: () => Promise<unknown> = () => Promise.resolve();

  /**
   * Calls `begin` when its turn has come, and resolves with its result. `over` resolves when the work that has begun is over; it is
   * called only when another call waits for it. Rejects with the reason of the signal when it aborts before the turn has come.
   */
  add<T>(
    begin: () => Promise<T>,
    over: (begun: Promise<T>) => Promise<unknown> = (begun) => begun,
    signal?: AbortSignal | undefined,
  ): Promise<T> {
    const turn = this.#last();
    const begun = unlessAborted(turn, signal).then(begin);
    let isOver: Promise<unknown> | undefined;
    this.#last = () => {
      isOver ??= turn.then(() => over(begun)).catch(() => {});
      return isOver;
    };
    return begun;
  }
}
