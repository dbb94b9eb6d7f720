/**
 * Measures how long the event loop of this process is blocked, in processor time of its thread,
 * because on a busy machine the clock would also count the work of other programs. During a
 * measurement the loop never sleeps, so each turn handles the events since the last turn.
 */
import { closeSync, openSync, readSync } from 'node:fs';

const NS_PER_MS = 1e6;

export class LoopWatch implements Disposable {
  /**
   * The figures of this thread. The first number is the processor time that the thread has used, in
   * nanoseconds.
   */
  readonly #file = openSync('/proc/thread-self/schedstat', 'r');
  readonly #buffer = Buffer.alloc(128);
  /** Resolves with the result of `act`, and with the longest turn during it. */
  async during<T>(act: () => Promise<T>): Promise<{ readonly result: T; readonly longestMs: number }> {
    let longestMs = 0;
    let beforeMs = this.#spentMs();
    let isOver = false;
    const look = (): void => {
      if (isOver) return;
      const nowMs = this.#spentMs();
      longestMs = Math.max(longestMs, nowMs - beforeMs);
      beforeMs = nowMs;
      setImmediate(look);
    };
    setImmediate(look);
    try {
      const result = await act();
      // The turn in which the work ends; it is the only one of work that waits for nothing.
      longestMs = Math.max(longestMs, this.#spentMs() - beforeMs);
      return { result, longestMs };
    } finally {
      isOver = true;
    }
  }

  #spentMs(): number {
    const length = readSync(this.#file, this.#buffer, 0, this.#buffer.length, 0);
    return Number(this.#buffer.toString('latin1', 0, length).split(' ', 1)[0]) / NS_PER_MS;
  }

  [Symbol.dispose](): void {
    closeSync(this.#file);
  }
}
