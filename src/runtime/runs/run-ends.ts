/**
 * The times at which runs end. They order the list of ended runs. A client that polls this list asks for runs that ended at or
 * after the last end that it has seen. So in each process an end is never earlier than the end before, even if the clock is set
 * back. And a page shows only ends before which no worker can commit another end.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { timeOfText, timeText } from '#src/base/ids.ts';
import { endPlaces } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Cluster } from '../homes/cluster.ts';
import type { RunDocument } from './run-document.ts';

/** The longest wait until the clock has passed the newest end, which another worker with a clock ahead may have made. */
const MAX_PAUSE_MS = 5;

export class RunEnds {
  readonly #store: Store;
  readonly #cluster: Pick<Cluster, 'askOthers'> | undefined;
  /** The newest end of this process. */
  #newestMs = 0;
  /** The earliest time at which runs of this process may still end. */
  #earliestMs = 0;

  /** `cluster` is absent in a server of one process. */
  constructor(store: Store, cluster?: Pick<Cluster, 'askOthers' | 'onAsked'>) {
    this.#store = store;
    this.#cluster = cluster;
    cluster?.onAsked('run-ends-settled', (afterMs) => this.#settle(Number(afterMs)));
  }

  /**
   * Returns the end, in milliseconds since 1970, of a run that ends now. The end is never before the run's beginning, although
   * the time of a new id can be ahead of the clock.
   */
  next({ createdAt }: Pick<RunDocument, 'createdAt'>): number {
    this.#newestMs = Math.max(Date.now(), Date.parse(createdAt), this.#newestMs, this.#earliestMs);
    return this.#newestMs;
  }

  /**
   * Resolves with a place in the list of ends after all acknowledged ends. All ends before this place are committed and can be
   * read, and no worker adds another end before it.
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

  /** Resolves with a time, once all earlier ends of this worker are committed. From now on, this worker makes no end before that time. */
  async #settle(afterMs: number): Promise<number> {
    const settledMs = Math.max(afterMs, this.#earliestMs, this.#newestMs + 1);
    this.#earliestMs = settledMs;
    await this.#store.durable();
    return settledMs;
  }
}
