import { pause, unlessAborted } from './abort.ts';
import { ApiError } from './api-error.ts';
import { GIVE_UP_AFTER_MS } from './event-stream.ts';

const PAUSE_MS = 100;

export interface QueuedCall<T> {
  /**
   * Resolves when the work that a call has begun has ended. Called only when another call waits for this end.
   */
  readonly over?: (begun: T) => Promise<unknown>;
  /** If the signal aborts before the turn of the call, the call is rejected with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How many seconds the call waits for the end of an abandoned preceding call: 60 by default. */
  readonly timeoutS?: number | null | undefined;
}

/**
 * Queues the calls of one session: each begins when the preceding call is over, so that none is refused with `session_busy`. The queue
 * must not keep results of calls, because it lives as long as its session.
 */
export class CallQueue {
  /** Resolves, once it is asked, when the last call is over. */
  #last: () => Promise<unknown> = () => Promise.resolve();
  /** Whether a call got no answer, so that the kernel may still run it. */
  #mayBeBusy = false;

  /** Calls `begin` when its turn has come, and resolves with its result. */
  add<T>(begin: () => Promise<T>, { over, signal, timeoutS }: QueuedCall<T> = {}): Promise<T> {
    const turn = this.#last();
    const begun = unlessAborted(turn, signal).then(() => this.#begin(begin, signal, timeoutS));
    const rest = begun.then(
      (result) => over && (() => over(result)),
      () => undefined,
    );
    let isOver: Promise<unknown> | undefined;
    this.#last = () => {
      isOver ??= turn.then(async () => (await rest)?.()).catch(() => {});
      return isOver;
    };
    return begun;
  }

  /** Repeats a refused call while an abandoned one may still run: the server interrupts its code, and is busy until that has ended. */
  async #begin<T>(
    begin: () => Promise<T>,
    signal: AbortSignal | undefined,
    timeoutS: number | null | undefined,
  ): Promise<T> {
    const patienceMs = timeoutS ? timeoutS * 1000 : GIVE_UP_AFTER_MS;
    for (const since = performance.now(); ; ) {
      try {
        const begun = await begin();
        this.#mayBeBusy = false;
        return begun;
      } catch (error) {
        this.#mayBeBusy ||= !(error instanceof ApiError);
        const isLate = performance.now() - since > patienceMs;
        if (Object(error).code !== 'session_busy' || !this.#mayBeBusy || isLate) throw error;
        await pause(PAUSE_MS, signal);
      }
    }
  }
}
