/**
 * Measures how long the event loop of this process is held up, in processor time of its thread, because on a busy
 * machine the clock counts the work of others. During a measurement the loop never sleeps, so each turn handles the
 * events since the last one.
 */
import { closeSync, openSync, readSync } from 'node:fs';

const NS_PER_MS = 1e6;

export class LoopWatch implements Disposable {
  /** Of this thread: the first number is the processor time that it had, in nanoseconds. */
  readonly #file = openSync('/proc/thread-self/schedstat', 'r');
  readonly #buffer = Buffer.alloc(128);
  /** Resolves with the result of `act` and the longest turn meanwhile. */
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
