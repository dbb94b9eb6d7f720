/**
 * Finds the id up to which the runs of a server of several workers are settled. Workers begin runs without a shared turn, so a
 * run with a smaller id may be committed after a run with a greater id. A reader who continues after the last id of a page would
 * miss that run. So a page in the order of ids ends at the id up to which every worker has committed all runs.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { newId, type RunId, timeOfId } from '#src/base/ids.ts';
import { runIndex } from '#storage/records/runs.ts';
import type { Store } from '#storage/store.ts';
import type { Cluster } from '../homes/cluster.ts';

/**
 * The longest wait until the clock has passed the time of the newest run, which a worker with a clock ahead may have begun.
 */
const MAX_PAUSE_MS = 5;

export class SettledRuns {
  readonly #store: Store;
  readonly #cluster: Pick<Cluster, 'askOthers' | 'onAsked'>;

  constructor(store: Store, cluster: Pick<Cluster, 'askOthers' | 'onAsked'>) {
    this.#store = store;
    this.#cluster = cluster;
    cluster.onAsked('runs-settled', (afterMs) => this.#settle(Number(afterMs)));
  }

  /**
   * Resolves with an id that is greater than the ids of all acknowledged runs of the workspace. All runs with smaller ids are
   * committed and can be read, and no worker makes another smaller id.
   */
  async horizon(workspaceId: string): Promise<string> {
    const newestFirst = { limit: 1, reverse: true };
    const [newest] = this.#store.list(runIndex, workspaceId, [], newestFirst);
    const newestMs = newest === undefined ? 0 : timeOfId(newest.id);
    const aheadMs = newestMs - Date.now() + 1;
    if (aheadMs > 0) await pause(Math.min(aheadMs, MAX_PAUSE_MS));
    const afterMs = Math.max(Date.now(), newestMs) + 1;
    const asked = this.#cluster.askOthers('runs-settled', afterMs);
    const [own, others] = await Promise.all([this.#settle(afterMs), asked]);
    this.#store.refresh();
    return [own, ...others].map(String).sort()[0]!;
  }

  /**
   * Resolves with an id of this or a later time, once all runs of this worker with smaller ids are committed. From now on, this
   * worker makes only greater ids.
   */
  async #settle(afterMs: number): Promise<string> {
    const id = newId<RunId>('run', Math.max(Date.now(), afterMs));
    await this.#store.durable();
    return id;
  }
}
