/**
 * All writes of workspaces, members and tokens go through `Identity`. Every write invalidates what was cached about
 * callers, so a revocation or a change of role takes effect on the next request. In a server of several workers it does so
 * in all of them before the request is answered that made it.
 */
import { ALONE, type Cluster, type Topic } from '#src/cluster/cluster.ts';
import { type Timestamp, timestamp } from '#src/core/clock.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';

export class Identity {
  readonly store: Store;
  readonly #now: () => number;
  readonly #listeners: (() => void)[] = [];
  readonly #cluster: Pick<Cluster, 'size' | 'askOthers' | 'onAsked'>;
  #revision = 0;
  /** Resolves once every worker knows of the latest change; undefined once it has. */
  #announcing: Promise<void> | undefined;

  /** `now` returns milliseconds since 1970. */
  constructor(
    store: Store,
    now: () => number = Date.now,
    cluster: Pick<Cluster, 'size' | 'askOthers' | 'onAsked'> = ALONE,
  ) {
    this.store = store;
    this.#now = now;
    this.#cluster = cluster;
    cluster.onAsked('identity-changed', () => {
      store.refresh();
      this.#noteChange();
      return true;
    });
  }

  /** Increases with every write, also of other workers. What was derived at another revision may be wrong. */
  get revision(): number {
    return this.#revision;
  }

  nowMs(): number {
    return this.#now();
  }

  timestamp(): Timestamp {
    return timestamp(this.#now());
  }

  /** Runs `decide` as `Store.write` does, and then calls the listeners. */
  write<T>(decide: (tx: Transaction) => T extends Promise<unknown> ? never : T) {
    const result = this.store.write(decide);
    this.#noteChange();
    this.announce('identity-changed', null);
    return result;
  }

  /**
   * Returns a promise that resolves once all that this turn has written is on disk and, if that changes identity, every
   * worker acts by it. Undefined when nothing is waiting.
   */
  durable(): Promise<void> | undefined {
    const committed = this.store.durable();
    const announcing = this.#announcing;
    if (announcing === undefined) return committed;
    // A handler may have written in an earlier turn than the one in which it answers.
    return committed === undefined ? announcing : Promise.all([committed, announcing]).then(() => undefined);
  }

  /** Asks every other worker once what this turn has written is on disk. `durable` waits for their answers. */
  announce(topic: Topic, payload: unknown): void {
    if (this.#cluster.size === 1) return;
    const committed = this.store.durable();
    const announcing = Promise.all([committed, this.#announcing]).then(async () => {
      await this.#cluster.askOthers(topic, payload);
      if (this.#announcing === announcing) this.#announcing = undefined;
    });
    announcing.catch(() => undefined); // the store reports a failed commit
    this.#announcing = announcing;
  }

  /** Calls `listener` after every write, also of other workers: what an earlier caller has open may have to end. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  #noteChange(): void {
    this.#revision++;
    for (const listener of this.#listeners) listener();
  }
}
