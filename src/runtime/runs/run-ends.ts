/**
 * The times at which runs end. They order the list of ended runs, which a client polls: it asks for the runs that ended at the
 * last end that it has seen or later. So in each process no end is earlier than the one before it, even if the clock is set back,
 * and a page shows only ends that no later commit of any worker can precede.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { timeOfText, timeText } from '#src/base/ids.ts';
import { endPlaces } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Cluster } from '../homes/cluster.ts';
import type { RunDocument } from './run-document.ts';

/** How long to wait until the clock has passed the newest end, because the clock of its worker may be ahead. */
const MAX_PAUSE_MS = 5;

export class RunEnds {
  readonly #store: Store;
  readonly #cluster: Pick<Cluster, 'askOthers'> | undefined;
  /** The newest end of this process. */
  #newestMs = 0;
  /** No run of this process ends before this time any more. */
  #earliestMs = 0;

  /** `cluster` is absent in a server of one process. */
  constructor(store: Store, cluster?: Pick<Cluster, 'askOthers' | 'onAsked'>) {
    this.#store = store;
    this.#cluster = cluster;
    cluster?.onAsked('run-ends-settled', (afterMs) => this.#settle(Number(afterMs)));
  }

  /**
   * Returns the end, in milliseconds since 1970, of a run that ends now. It is never before the run's beginning, because the time
   * of a new id can be ahead of the clock.
   */
  next({ createdAt }: Pick<RunDocument, 'createdAt'>): number {
    this.#newestMs = Math.max(Date.now(), Date.parse(createdAt), this.#newestMs, this.#earliestMs);
    return this.#newestMs;
  }

  /**
   * Resolves with a place in the list of ends that is behind all ends acknowledged so far. All ends before it are committed and
   * can be read, and no worker makes another one.
   */
  async horizon(workspaceId: string): Promise<string> {
    const [newest] = this.#store.list(endPlaces, workspaceId, [], { limit: 1, reverse: true });
    const newestMs = newest === undefined ? 0 : timeOfText(newest.id);
    const aheadMs = newestMs - Date.now() + 1;
    if (aheadMs > 0) await pause(Math.min(aheadMs, MAX_PAUSE_MS));
    const afterMs = Math.max(Date.now(), newestMs + 1);
    const asked = this.#cluster?.askOthers('run-ends-settled', afterMs);
    const [own, others = []] = await Promise.all([this.#settle(afterMs), asked]);
    this.#store.refresh();
    return timeText(Math.min(own, ...others.map(Number)));
  }

  /** Resolves with a time, once all earlier ends of this worker are committed. From now on it makes none before that time. */
  async #settle(afterMs: number): Promise<number> {
    const settledMs = Math.max(afterMs, this.#earliestMs, this.#newestMs + 1);
    this.#earliestMs = settledMs;
    await this.#store.durable();
    return settledMs;
  }
}
