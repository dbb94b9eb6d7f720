/** `node:timers/promises` in the time of the world. */

interface Waiting {
  readonly signal?: AbortSignal | undefined;
  readonly ref?: boolean | undefined;
}

export function setTimeout<T>(ms?: number, value?: T, options: Waiting = {}): Promise<T | undefined> {
  return unlessAborted(options, value, (resolve) => {
    const timer = globalThis.setTimeout(resolve, ms);
    return () => globalThis.clearTimeout(timer);
  });
}

export function setImmediate<T>(value?: T, options: Waiting = {}): Promise<T | undefined> {
  return unlessAborted(options, value, (resolve) => {
    const immediate = globalThis.setImmediate(resolve);
    return () => globalThis.clearImmediate(immediate);
  });
}

/** Resolves when `begin` calls back. Rejects, and calls the function that `begin` has returned, when the signal aborts before. */
function unlessAborted<T>(
  { signal }: Waiting,
  value: T | undefined,
  begin: (resolve: () => void) => () => void,
): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const refuse = () => {
      const error = new Error('The operation was aborted', { cause: signal?.reason });
      reject(Object.assign(error, { name: 'AbortError', code: 'ABORT_ERR' }));
    };
    if (signal?.aborted === true) return refuse();
    const end = begin(() => {
      signal?.removeEventListener('abort', leave);
      resolve(value);
    });
    const leave = () => {
      end();
      refuse();
    };
    signal?.addEventListener('abort', leave, { once: true });
  });
}
