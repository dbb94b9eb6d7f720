/** When a request is repeated, and after which pause. */
import { pause } from './abort.ts';
import { ConnectionError } from './api-error.ts';

/** Longer pauses than this are left to the caller. */
const MAX_RETRY_AFTER_S = 60;
const FIRST_PAUSE_MS = 100;

/** Returns whether another attempt may succeed. */
export function isTransient(error: unknown): boolean {
  const { status, code } = Object(error);
  const isRefusal = status >= 500 || [408, 429].includes(status) || code === 'idempotency_in_progress';
  return isRefusal || error instanceof ConnectionError;
}

export interface RetryOptions {
  /** How many times the request is repeated at most. */
  readonly retries: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether a failure that another attempt may mend is an end nevertheless. */
  readonly isFinal: (error: unknown) => unknown;
}

/**
 * Resolves with the result of the first attempt that succeeds. The pauses begin with 100 ms and double, but are never shorter than the
 * server's `Retry-After`. They are randomised, so that the clients of a restarted server do not return at once.
 */
export async function withRetries<T>(
  attempt: () => Promise<T>,
  { retries, signal, isFinal }: RetryOptions,
): Promise<T> {
  for (let repeated = 0; ; repeated++) {
    try {
      return await attempt();
    } catch (error) {
      const retryAfter = Object(error).retryAfter ?? 0;
      if (isFinal(error) || repeated >= retries || retryAfter > MAX_RETRY_AFTER_S || !isTransient(error))
        throw error;
      const doubled = FIRST_PAUSE_MS * 2 ** repeated * (0.75 + Math.random() / 2);
      await pause(Math.max(doubled, retryAfter * 1000), signal);
    }
  }
}
