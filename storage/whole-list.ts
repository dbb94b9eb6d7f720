/** Lists that come whole: they are read in slices of the event loop, so that a long one holds up nobody. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type JsonPage, MAX_PAGE_BYTES, unlessDamaged } from './listing.ts';
import type { Entry, Store } from './store.ts';

/** How long one slice may hold the event loop. */
const SLICE_MS = 4;

export interface WholeListRequest {
  /** The cursor to begin after; undefined for the beginning. */
  readonly after: string | undefined;
  readonly limit: number;
  /** Aborts when nobody wants the list any more. */
  readonly signal: AbortSignal;
}

/**
 * Resolves with the first `limit` items as JSON text, `{items, nextCursor}`, once all of it is on disk. `entriesAfter` yields
 * the entries after an id, and is called again for each slice; `jsonOf` returns undefined for an entry that is not an item.
 * A list that would be larger than a page may be ends early, with a cursor.
 */
export async function wholeListOf<R>(
  store: Pick<Store, 'durable'>,
  { after, limit, signal }: WholeListRequest,
  entriesAfter: (id: string | undefined) => Iterable<Entry<R>>,
  jsonOf: (value: R, id: string) => string | undefined,
): Promise<JsonPage> {
  const items: string[] = [];
  let size = 0;
  let last = after;
  const takeSlice = (): 'more' | 'end' | 'full' => {
    const endMs = performance.now() + SLICE_MS;
    for (const { id, value } of entriesAfter(last)) {
      const item = unlessDamaged(() => jsonOf(value, id));
      if (item !== undefined) {
        size += item.length;
        if (items.length === limit || (items.length > 0 && size > MAX_PAGE_BYTES)) return 'full';
        items.push(item);
      }
      last = id;
      if (performance.now() >= endMs) return 'more';
    }
    return 'end';
  };
  let outcome = takeSlice();
  while (outcome === 'more' && !signal.aborted) {
    await nextTurn();
    outcome = takeSlice();
  }
  await store.durable();
  const nextCursor = outcome === 'full' ? (last ?? null) : null;
  return Buffer.from(`{"items":[${items.join(',')}],"nextCursor":${JSON.stringify(nextCursor)}}`);
}
