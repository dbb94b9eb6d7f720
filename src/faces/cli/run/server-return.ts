/**
 * Waits for a server that does not answer, for example during an upgrade. A command that follows a run continues when the server
 * is back. One line is printed each time the server stops answering. A command that begins while its server is starting waits,
 * too.
 */

import { anySignal } from '#src/base/async/any-signal.ts';
import { pause } from '#src/contract/client/abort.ts';
import { ApiError, ConnectionError } from '#src/contract/client/api-error.ts';
import type { Client } from '#src/contract/client/client.ts';
import { GIVE_UP_AFTER_MS } from '#src/contract/client/event-stream.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';

const MIN_PAUSE_MS = 100;
const MAX_PAUSE_MS = 2_000;
/** The longest wait for a server that is starting, which is usually ready much sooner. */
const START_MS = 30_000;

export interface ServerReturnOptions {
  /** Called with a line for people. */
  readonly say: (text: string) => void;
  /** How long to wait for the server. */
  readonly giveUpAfterMs?: number;
  /** Returns whether a failure means that the server may answer later. */
  readonly isAway?: (error: unknown) => boolean;
}

/** The absences of a server during one command. */
export class ServerReturn {
  readonly #say: (text: string) => void;
  readonly #giveUpAfterMs: number;
  readonly #means: (error: unknown) => boolean;
  #isAway = false;
  #hasGivenUp = false;

  constructor({ say, giveUpAfterMs = GIVE_UP_AFTER_MS, isAway = isServerAway }: ServerReturnOptions) {
    this.#say = say;
    this.#means = isAway;
    this.#giveUpAfterMs = giveUpAfterMs;
  }

  /** Whether the server did not return in time. After that, nothing waits for the server again. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp;
  }

  /** Notes that the server does not answer. */
  away(): void {
    if (!this.#isAway)
      this.#say(
        `The server does not answer; waiting up to ${Math.round(this.#giveUpAfterMs / 1000)} s for it.`,
      );
    this.#isAway = true;
  }

  /** Notes that the server has answered. */
  back(): void {
    if (this.#isAway) this.#say('The server is back.');
    this.#isAway = false;
  }

  /**
   * Resolves with the result of `request`, which is repeated while the server does not answer. Rejects with the last failure when
   * the server is away for too long, with any other failure at once, and with the reason of `signal` when it aborts.
   */
  async attempt<T>(request: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const since = performance.now();
    for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        const result = await request();
        this.back();
        return result;
      } catch (error) {
        signal?.throwIfAborted();
        if (!this.#means(error)) throw error;
        if (this.#hasGivenUp || performance.now() - since > this.#giveUpAfterMs) {
          this.#hasGivenUp = true;
          throw error;
        }
      }
      this.away();
      await pause(pauseMs, signal);
    }
  }

  /** Resolves with the result of `follow`, which itself waits for the server. Notes when `follow` has waited in vain. */
  async through<T>(follow: () => Promise<T>): Promise<T> {
    try {
      return await follow();
    } catch (error) {
      this.#hasGivenUp ||= isServerAway(error);
      throw error;
    }
  }
}

/**
 * Resolves when the server of a command answers, which may still be starting. Rejects when that takes more than half a minute,
 * also if the server accepts the connection and sends nothing. Rejects at once when waiting is useless: for a name without an
 * address, or a refused token.
 */
export async function awaitStart(
  client: Client,
  {
    say,
    signal,
    giveUpAfterMs = START_MS,
  }: Pick<ServerReturnOptions, 'say' | 'giveUpAfterMs'> & { signal: AbortSignal },
): Promise<void> {
  const isAway = (error: unknown) =>
    isServerAway(error) && (!(error instanceof ConnectionError) || error.isRefused);
  const server = new ServerReturn({ say, giveUpAfterMs, isAway });
  const ask = async () => {
    const patience = AbortSignal.timeout(giveUpAfterMs);
    try {
      await client.notebooks.list({ limit: 1, signal: anySignal(signal, patience) });
    } catch (error) {
      if (!patience.aborted) throw error;
      const seconds = Math.round(giveUpAfterMs / 1000);
      throw new CommandFailure(
        `The server accepts connections, but has not answered for ${seconds} s. Check whether it is stopped or overloaded.`,
        EXIT.unreachable,
      );
    }
  };
  await server.attempt(ask, signal);
}

/** Returns whether a request has failed because the server does not answer. The same request may succeed later. */
export function isServerAway(error: unknown): boolean {
  if (error instanceof ApiError)
    return [502, 504].includes(error.status) || (error.status === 503 && error.code !== 'at_capacity');
  return error instanceof ConnectionError;
}
