/**
 * All writes of workspaces, members and tokens go through `Identity`. Every write invalidates the cached callers, so a revocation
 * or a change of role takes effect on the next request. In a server of several workers it takes effect in all of them before the
 * response to the write is sent.
 */

import { AppError } from '#src/base/errors/errors.ts';
import { type IsoTime, timestamp } from '#src/base/time/clock.ts';
import { ALONE, type Cluster, type Topic } from '#src/runtime/homes/cluster.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

type Workers = Pick<Cluster, 'size' | 'haveOthersAct' | 'onAsked'>;

export class Identity {
  readonly store: Store;
  readonly #now: () => number;
  readonly #listeners: (() => void)[] = [];
  readonly #cluster: Workers;
  readonly #onFault: (error: unknown) => void;
  #revision = 0;
  /** Resolves once every worker applies the latest change; undefined when all apply it. */
  #announcing: Promise<void> | undefined;

  /** `now` returns milliseconds since 1970. `onFault` is called with errors that a listener throws. */
  constructor(
    store: Store,
    now: () => number = Date.now,
    cluster: Workers = ALONE,
    onFault: (error: unknown) => void = () => undefined,
  ) {
    this.store = store;
    this.#now = now;
    this.#cluster = cluster;
    this.#onFault = onFault;
    cluster.onAsked('identity-changed', () => {
      store.refresh();
      if (!this.#noteChange()) throw notCarriedOut();
      return true;
    });
  }

  /**
   * Increases with every write, including those of other workers. A value that was derived at another revision may be
   * outdated.
   */
  get revision(): number {
    return this.#revision;
  }

  nowMs(): number {
    return this.#now();
  }

  timestamp(): IsoTime {
    return timestamp(this.#now());
  }

  /** Runs `decide` as `Store.write` does, announces the change to the other workers, and calls the listeners. */
  write<T>(decide: (tx: Transaction) => T extends Promise<unknown> ? never : T) {
    const result = this.store.write(decide);
    this.announce('identity-changed', null);
    if (!this.#noteChange()) this.#holdDurable(() => Promise.reject(notCarriedOut()));
    return result;
  }

  /**
   * Returns a promise that resolves once everything that this turn has written is on disk and every worker has acted on its changes
   * of identity. It rejects with `unavailable` when a worker could not. Returns undefined when nothing is waiting.
   */
  durable(): Promise<void> | undefined {
    const committed = this.store.durable();
    const announcing = this.#announcing;
    if (announcing === undefined) return committed;
    // A handler may have written in a turn before the one in which it replies.
    return committed === undefined ? announcing : Promise.all([committed, announcing]).then(() => undefined);
  }

  /**
   * Makes every other worker act on the topic once the writes of this turn are on disk. `durable` waits until they
   * have.
   */
  announce(topic: Topic, payload: unknown): void {
    if (this.#cluster.size === 1) return;
    this.#holdDurable(async () => {
      const hasActed = await this.#cluster.haveOthersAct(topic, payload);
      if (!hasActed) throw notCarriedOut();
    });
  }

  /**
   * Makes `durable` wait for `act`, which is called once the writes of this turn are on disk and the preceding
   * announcement has ended.
   */
  #holdDurable(act: () => Promise<void>): void {
    const committed = this.store.durable();
    const before = this.#announcing;
    const announcing: Promise<void> = this.#actAfter(before, committed, act).finally(() => {
      if (this.#announcing === announcing) this.#announcing = undefined;
    });
    announcing.catch(() => undefined); // the store or a listener has reported the failure
    this.#announcing = announcing;
  }

  async #actAfter(
    before: Promise<void> | undefined,
    committed: Promise<void> | undefined,
    act: () => Promise<void>,
  ): Promise<void> {
    // A failure of the preceding announcement must not prevent this one.
    const [earlier] = await Promise.allSettled([before]);
    await committed;
    await act();
    // The request that made the earlier change may wait for this promise only, and has to see the failure.
    if (earlier.status === 'rejected') throw earlier.reason;
  }

  /**
   * Calls `listener` after every write of this worker or another one, so that it can end streams and work that callers
   * may no longer use.
   */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Calls every listener, even if another one throws. Returns whether all succeeded. */
  #noteChange(): boolean {
    this.#revision++;
    let isCarriedOut = true;
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        isCarriedOut = false;
        this.#onFault(error);
      }
    }
    return isCarriedOut;
  }
}

function notCarriedOut(): AppError {
  return new AppError(
    'unavailable',
    'The change is stored, but a part of the server could not carry it out. The log of the server says why.',
  );
}
