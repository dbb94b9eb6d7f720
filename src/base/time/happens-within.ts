/**
 * Resolves with true once `watch` has called its callback. Resolves with false when `ms` have
 * passed before, or when the signal aborts before or has already aborted. `watch` returns a
 * function that ends watching, and never calls the callback before it returns.
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
