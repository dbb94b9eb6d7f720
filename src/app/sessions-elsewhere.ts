/**
 * How many notebook sessions live in the other workers, for the limit of the whole server. They are asked before a session is
 * opened, and once a second for sessions that wake; what begins in between is not counted, so the limit can be exceeded by
 * as many sessions as begin in several workers at the same moment.
 */
import type { Cluster } from '#src/cluster/cluster.ts';

const REFRESH_MS = 1000;

export interface SessionsElsewhereOptions {
  readonly cluster: Cluster;
  /** Whether there is a limit; without one nobody is asked. */
  readonly isLimited: boolean;
  /** Returns how many live in this worker. */
  readonly own: () => number;
}

export class SessionsElsewhere implements Disposable {
  readonly #cluster: Cluster;
  readonly #isWanted: boolean;
  readonly #timer: NodeJS.Timeout | undefined;
  /** As of the last answers. */
  count = 0;

  constructor({ cluster, isLimited, own }: SessionsElsewhereOptions) {
    this.#cluster = cluster;
    this.#isWanted = isLimited && cluster.size > 1;
    cluster.onAsked('sessions', own);
    if (this.#isWanted) this.#timer = setInterval(() => void this.refresh(), REFRESH_MS).unref();
  }

  /** Resolves once the others were asked. */
  async refresh(): Promise<void> {
    if (!this.#isWanted) return;
    const counts = await this.#cluster.askOthers('sessions', null, REFRESH_MS);
    this.count = counts.reduce<number>((sum, count) => sum + Number(count), 0);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }
}
