import type { EventObject } from 'xstate';
import type { Log } from '#src/core/log.ts';
import { type Address, addressText } from './address.ts';

/** A command or a fact for an actor, or a notice of one: its type, and members that its chart knows. */
export type ActorEvent = EventObject & Readonly<Record<string, unknown>>;

export type NoticeListener = (address: Address, notice: ActorEvent, committed: Promise<void>) => void;

/**
 * Who hears what actors emit: listeners of a kind in the very turn, watchers of one actor once it is committed. A
 * listener that throws is logged; neither the actor nor the other listeners suffer from its mistake.
 */
export class NoticeBoard {
  readonly #log: Log;
  readonly #listeners = new Map<string, NoticeListener[]>();
  readonly #watchers = new Map<string, Set<(notice: ActorEvent) => void>>();

  constructor(log: Log) {
    this.#log = log;
  }

  listen(kind: string, listener: NoticeListener): void {
    this.#listeners.set(kind, [...(this.#listeners.get(kind) ?? []), listener]);
  }

  /** Until the returned function is called. */
  watch(address: Address, watcher: (notice: ActorEvent) => void): () => void {
    const text = addressText(address);
    const watchers = this.#watchers.get(text) ?? new Set();
    this.#watchers.set(text, watchers.add(watcher));
    return () => {
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(text) === watchers) this.#watchers.delete(text);
    };
  }

  publish(address: Address, notice: ActorEvent, committed: Promise<void>): void {
    for (const listener of this.#listeners.get(address.kind) ?? []) {
      this.#guarded(address, () => listener(address, notice, committed));
    }
    const watchers = this.#watchers.get(addressText(address));
    if (watchers === undefined) return;
    const tellAll = () => {
      for (const watcher of [...watchers]) this.#guarded(address, () => watcher(notice));
    };
    committed.then(tellAll, () => undefined); // a failed commit is reported once, by the store
  }

  #guarded(address: Address, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#log.error({ err: error, actor: addressText(address) }, 'a listener failed');
    }
  }
}
