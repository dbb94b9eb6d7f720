/**
 * Reads pages in slices of the event loop, so that a page that examines many entries does not block
 * other requests.
 */

import { inSlices, MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { joined } from '#src/base/text/joined-bytes.ts';
import type { Store } from '../store.ts';
import type { Entry } from './committed-records.ts';
import type { PageRequest } from './listing.ts';
import { type Listing, PageBuilder, type PageShape } from './page-builder.ts';

/** How long one step may hold the event loop. */
const STEP_MS = 2;

export interface SlicedList<R, T> extends Omit<PageShape<R, T>, 'limit'> {
  /** The workspace whose entries are listed. */
  readonly workspaceId: string;
  readonly page: Omit<PageRequest, 'order'>;
  /** Yields the entries after an id, or all of them. It is called again for each step. */
  readonly entriesAfter: (id: string | undefined) => Iterable<Entry<R>>;
}

/**
 * Resolves with a page once everything in it is on disk, because its caller may no longer be observed (`Store.observe`). The first step
 * is made within the call, and most pages need only this step. A page that needs more steps is read in slices.
 */
export async function slicedListing<R, T>(
  store: Pick<Store, 'durable' | 'observe'>,
  { page: { after, limit, signal }, workspaceId, entriesAfter, ...shape }: SlicedList<R, T>,
): Promise<Listing<T>> {
  const page = new PageBuilder({ ...shape, limit }, after);
  const takeStep = () => page.take(entriesAfter(page.last), performance.now() + STEP_MS);
  const { result: isWhole, uncommitted } = store.observe(takeStep);
  if (isWhole) {
    if (uncommitted !== undefined) await uncommitted;
    return page.listing;
  }
  await inSlices(
    steps(() => signal?.aborted === true || takeStep()),
    workspaceId,
  );
  await store.durable();
  return page.listing;
}

function* steps(isOver: () => boolean): Generator<undefined, void> {
  while (!isOver()) yield;
}

/** A page as JSON text, `{items, nextCursor}`, whose items are copied as they are stored. */
export type JsonPage = Uint8Array;

const COMMA = Buffer.from(',');

/**
 * Resolves with a page as `slicedListing` does, for items that are JSON. A page that would be too
 * large ends early.
 */
export async function slicedJsonPage<R>(
  store: Pick<Store, 'durable' | 'observe'>,
  list: SlicedList<R, Uint8Array>,
): Promise<JsonPage> {
  const { items, nextCursor } = await slicedListing(store, { ...list, sizeOf: (item) => item.byteLength });
  const parts = [
    Buffer.from('{"items":['),
    ...items.flatMap((bytes, i) => (i === 0 ? [bytes] : [COMMA, bytes])),
    Buffer.from(`],"nextCursor":${JSON.stringify(nextCursor)}}`),
  ];
  const length = parts.reduce((sum, { byteLength }) => sum + byteLength, 0);
  return length <= MAX_SIZE_AT_ONCE ? Buffer.concat(parts) : inSlices(joined(parts), list.workspaceId);
}
