/**
 * Databases ignore a cancel that comes while no statement runs: before the statement has reached them, or between two portions of
 * its rows. The statement would then run on, also after its connection has ended.
 */

/** The pause between two requests to cancel. */
const PAUSE_MS = 200;

/**
 * Calls `cancel` when the signal aborts, and again after each pause. Errors of `cancel` are ignored. Returns a function that stops
 * this; the caller calls it when the statement has ended.
 */
export function cancelRepeatedly(signal: AbortSignal, cancel: () => Promise<void>): () => void {
  let pause: NodeJS.Timeout | undefined;
  let hasEnded = false;
  const ask = async () => {
    await cancel().catch(() => {}); // the guard destroys the sockets if the statement does not end
    if (!hasEnded) pause = setTimeout(ask, PAUSE_MS);
  };
  signal.addEventListener('abort', ask, { once: true });
  return () => {
    hasEnded = true;
    clearTimeout(pause);
    signal.removeEventListener('abort', ask);
  };
}
