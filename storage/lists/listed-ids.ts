import { type IdKind, lastIdOf, newId, timeOfId } from '#src/base/ids.ts';
import type { RecordKind } from '../codec.ts';
import type { Store } from '../store.ts';

/** A list whose keys end with an id. */
export interface IdList {
  readonly kind: RecordKind<unknown>;
  readonly partition: string;
  readonly prefix?: readonly string[];
}

/**
 * Returns a new id for an entry of lists that several workers write. Call it in a shared turn (`Store.decide`): the id
 * is then greater than all committed ids, even if the workers' clocks differ. So ids increase in the order of the
 * commits, and a reader who continues after the last id of a page misses no entry.
 */
export function newListedId<Id extends string>(
  store: Pick<Store, 'isShared' | 'list'>,
  kind: IdKind,
  lists: readonly IdList[],
): Id {
  return store.isShared ? newIdAfter<Id>(store, kind, lists) : newId<Id>(kind); // the ids of one process increase
}

/** Returns a new id that is greater than all committed ids of the lists, also after the clock was set back. */
export function newIdAfter<Id extends string>(
  store: Pick<Store, 'list'>,
  kind: IdKind,
  lists: readonly IdList[],
): Id {
  const id = newId<Id>(kind);
  const newest = lists
    .flatMap((list) => [
      ...store.list(list.kind, list.partition, list.prefix ?? [], {
        after: lastIdOf(kind),
        limit: 1,
        reverse: true,
      }),
    ])
    .map((entry) => entry.id)
    .sort()
    .at(-1);
  return newest === undefined || id > newest ? id : newId<Id>(kind, timeOfId(newest) + 1);
}
