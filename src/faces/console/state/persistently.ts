import { isTransient } from '#src/contract/client/retry.ts';

const PAUSE_MS = 3_000;

/**
 * Calls `follow` until it ends normally, and again after each temporary error, such as a restart of the server. The client itself
 * gives up when its first connection fails, and a minute after it has lost a connection. Rejects with any other error, and when
 * `signal` aborts.
 */
export async function persistently(
  follow: (isAgain: boolean) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (let isAgain = false; ; isAgain = true) {
    try {
      return await follow(isAgain);
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    signal.throwIfAborted();
  }
}
