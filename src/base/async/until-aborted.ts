/** The options of `untilAborted`. */
export interface AbortOptions<T> {
  /** Returns the error to reject with. Defaults to the signal's reason. */
  readonly reason?: () => unknown;
  /**
   * Receives a result that comes after the abort, to release it. An error of the work after the
   * abort is ignored.
   */
  readonly discard?: (late: T) => Promise<void>;
}

/** Resolves or rejects like the promise, but rejects as soon as the signal aborts. The work itself continues. */
export function untilAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
  { reason = () => signal.reason, discard }: AbortOptions<T> = {},
): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(reason());
      if (discard !== undefined) promise.then(discard).catch(() => {}); // nobody waits for the result
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
