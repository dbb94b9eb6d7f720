/**
 * Reads pages in slices of the event loop, so that a page that examines many entries does not block
 * other requests.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { joined } from '#src/core/joined-bytes.ts';
import { inSlices, MAX_SIZE_AT_ONCE } from '#src/core/slices.ts';
import type { Store } from '../store.ts';
import type { Entry } from './committed-records.ts';
import type { PageRequest } from './listing.ts';
import { type Listing, PageBuilder, type PageShape } from './page-builder.ts';

/** How long one slice may hold the event loop. */
const SLICE_MS = 2;

export interface SlicedList<R, T> extends Omit<PageShape<R, T>, 'limit'> {
  readonly page: Omit<PageRequest, 'order'>;
  /** Yields the entries after an id, or all of them. It is called again for each slice. */
  readonly entriesAfter: (id: string | undefined) => Iterable<Entry<R>>;
}

/**
 * Resolves with a page. The first slice is read within the call, and most pages need no other; a page that needs more
 * resolves once everything in it is on disk.
 */
export async function slicedListing<R, T>(
  store: Pick<Store, 'durable'>,
  { page: { after, limit, signal }, entriesAfter, ...shape }: SlicedList<R, T>,
): Promise<Listing<T>> {
  const page = new PageBuilder({ ...shape, limit }, after);
  const takeSlice = () => page.take(entriesAfter(page.last), performance.now() + SLICE_MS);
  if (takeSlice()) return page.listing;
  while (signal?.aborted !== true) {
    await nextTurn();
    if (takeSlice()) break;
  }
  await store.durable();
  return page.listing;
}

/** A page as JSON text, `{items, nextCursor}`, whose items are copied as they are stored. */
export type JsonPage = Uint8Array;

const COMMA = Buffer.from(',');

/**
 * Resolves with a page as `slicedListing` does, for items that are JSON. A page that would be too
 * large ends early.
 */
export async function slicedJsonPage<R>(
  store: Pick<Store, 'durable'>,
  list: SlicedList<R, Uint8Array>,
): Promise<JsonPage> {
  const { items, nextCursor } = await slicedListing(store, { ...list, sizeOf: (item) => item.byteLength });
  const parts = [
    Buffer.from('{"items":['),
    ...items.flatMap((bytes, i) => (i === 0 ? [bytes] : [COMMA, bytes])),
    Buffer.from(`],"nextCursor":${JSON.stringify(nextCursor)}}`),
  ];
  const length = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return length <= MAX_SIZE_AT_ONCE ? Buffer.concat(parts) : inSlices(joined(parts));
}
