/**
 * Resolves with true once `watch` has called its callback, and with false when `ms` have passed or the signal aborts first, or
 * has aborted. `watch` returns a function that ends watching; the callback does not come within the call.
 */
export function happensWithin(
  ms: number,
  signal: AbortSignal,
  watch: (happened: () => void) => () => void,
): Promise<boolean> {
  if (signal.aborted) return Promise.resolve(false);
  return new Promise((resolve) => {
    const settle = (happened: boolean) => {
      stopWatching();
      clearTimeout(timer);
      signal.removeEventListener('abort', giveUp);
      resolve(happened);
    };
    const giveUp = () => settle(false);
    const timer = setTimeout(giveUp, ms);
    signal.addEventListener('abort', giveUp);
    const stopWatching = watch(() => settle(true));
  });
}
