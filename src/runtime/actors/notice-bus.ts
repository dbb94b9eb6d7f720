import type { Log } from '#src/base/log/log.ts';
import { type Address, addressText } from './address.ts';

/** `committed` resolves when the notice may be passed on to others; undefined when that is possible at once. */
export type NoticeListener<Notice> = (
  address: Address,
  notice: Notice,
  committed: Promise<void> | undefined,
) => void;

/**
 * Delivers the notices that actors of one kind emit. Listeners of the kind are called in the turn in which an actor emits.
 * Watchers of one actor are called later, once the reported facts are committed. If a listener throws, the error is logged. The
 * actor and the other listeners are not affected.
 */
export class NoticeBus<Notice> {
  readonly #log: Log;
  readonly #listeners: NoticeListener<Notice>[] = [];
  readonly #watchers = new Map<string, Set<(notice: Notice) => void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adds a listener of all actors of the kind. It stays for the life of the process. */
  listen(listener: NoticeListener<Notice>): void {
    this.#listeners.push(listener);
  }

  /** Adds a watcher of one actor. Returns a function that removes the watcher. */
  watch(address: Address, watcher: (notice: Notice) => void): () => void {
    const text = addressText(address);
    const watchers = this.#watchers.get(text) ?? new Set();
    this.#watchers.set(text, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(text) === watchers) this.#watchers.delete(text);
    };
  }

  /** Calls the listeners now, and the watchers of this actor once `committed` resolves. */
  publish(address: Address, notice: Notice, committed: Promise<void> | undefined): void {
    for (const listener of this.#listeners) {
      try {
        listener(address, notice, committed);
      } catch (error) {
        this.#logFailure(address, error);
      }
    }
    const watchers = this.#watchers.size === 0 ? undefined : this.#watchers.get(addressText(address));
    if (watchers === undefined) return;
    const callWatchers = () => {
      for (const watcher of [...watchers]) {
        try {
          watcher(notice);
        } catch (error) {
          this.#logFailure(address, error);
        }
      }
    };
    Promise.resolve(committed).then(callWatchers, () => undefined); // the store reports a failed commit once
  }

  #logFailure(address: Address, error: unknown): void {
    this.#log.error({ err: error, actor: addressText(address) }, 'a listener failed');
  }
}
