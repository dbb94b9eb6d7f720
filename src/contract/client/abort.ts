/** Waits that end when a signal aborts. */

/**
 * Returns a signal that aborts when either of two signals aborts. The caller keeps both: Node.js collects a
 * timeout to which only a combined signal refers, before it aborts
 * (https://github.com/nodejs/node/issues/57736).
 */
export function eitherSignal(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? one : AbortSignal.any([one, other]);
}

/** Resolves with `work`, or rejects with the reason of the signal when it aborts first. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}

/** The longest time of a timer. A timer with a longer time would end at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Resolves with the work, or rejects and aborts its signal after `ms`. */
export async function inTime<T>(ms: number, work: (silence: AbortSignal) => Promise<T>): Promise<T> {
  const silence = new AbortController();
  const end = () => silence.abort(new Error(`silence for ${ms} ms`));
  const timer = setTimeout(end, Math.min(ms, LONGEST_MS));
  try {
    return await unlessAborted(work(silence.signal), silence.signal);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves with `work`. When the signal aborts first, rejects with its reason, and undoes the work once it is done. */
export async function undoneByAbort<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  undo: (result: T) => Promise<unknown>,
): Promise<T> {
  try {
    return await unlessAborted(work, signal);
  } catch (error) {
    if (signal?.aborted) work.then(undo).catch(() => {});
    throw error;
  }
}

/** Resolves after `ms`. Rejects with the reason of the signal when it aborts. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  let timer: ReturnType<typeof setTimeout>;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return unlessAborted(over, signal).finally(() => clearTimeout(timer));
}
