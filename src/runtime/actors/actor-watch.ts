import type { Presence } from '#src/contract/wire/actor.ts';
import type { Inspectable } from './inspected-actor.ts';

/** An event of an actor, reported in the turn in which it happens. */
export type ActorChange =
  /** The actor took an event in the state `from`. `from` is undefined when the actor came into memory. */
  | { readonly type: 'moved'; readonly actor: Inspectable; readonly event?: string; readonly from: unknown }
  /** The actor's state refused a command. */
  | { readonly type: 'refused'; readonly actor: RefusedActor; readonly event: string; readonly code: string }
  /** The actor left memory, because it ended, failed, was deleted, or is now only in the store. */
  | { readonly type: 'left'; readonly actor: Inspectable; readonly presence: LeftAs };

export type RefusedActor = Pick<Inspectable, 'address' | 'state'>;
export type LeftAs = Exclude<Presence, 'live'> | 'deleted';

/** Publishes events of actors while somebody watches. Without a watcher, an event costs one comparison. */
export class ActorWatch {
  readonly #watchers = new Set<(change: ActorChange) => void>();

  get isWatched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Calls `watcher` with every change. Returns a function that removes the watcher. A watcher must not throw or command actors. */
  add(watcher: (change: ActorChange) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  tell(change: ActorChange): void {
    for (const watcher of this.#watchers) watcher(change);
  }
}
