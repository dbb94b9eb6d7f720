import { AppError } from '#src/core/errors.ts';
import type { Entry } from './store.ts';

/** Which page of a list to return. */
export interface PageRequest {
  /** The id of the last item of the page before; undefined for the first page. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** One page of a list. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** The `after` of the next page; null when there are no more items. */
  readonly nextCursor: string | null;
}

/** Returns a page of the first `limit` entries. `entries` must yield at least one more when there are more. */
export function listingOf<R, T>(
  entries: Iterable<Entry<R>>,
  limit: number,
  itemOf: (value: R, id: string) => T,
): Listing<T> {
  const items: T[] = [];
  let last: string | null = null;
  for (const { id, value } of entries) {
    if (items.length === limit) return { items, nextCursor: last };
    items.push(itemOf(value, id));
    last = id;
  }
  return { items, nextCursor: null };
}

/** Returns the error for an `after` that is not the id of an item. */
export function invalidCursor(): AppError {
  return new AppError('invalid_cursor', 'The cursor is not the id of an item of this list.');
}

const COMMA = Buffer.from(',');

/** A page as JSON text, `{items, nextCursor}`, whose items are copied as they are stored. */
export type JsonPage = Uint8Array;

/** A page with more bytes ends early; its `nextCursor` then names its last item. */
export const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/** Returns a page of at most `limit` entries. The caller passes one entry more, which shows that another page follows. */
export function jsonPageOf<T>(
  entries: Iterable<Entry<T>>,
  limit: number,
  bytesOf: (value: T, id: string) => Uint8Array,
): JsonPage {
  const chunks: Uint8Array[] = [Buffer.from('{"items":[')];
  let count = 0;
  let size = 0;
  let last: string | null = null;
  let more = false;
  for (const { id, value } of entries) {
    const bytes = bytesOf(value, id);
    if (count === limit || (count > 0 && size + bytes.byteLength > MAX_PAGE_BYTES)) {
      more = true;
      break;
    }
    if (count > 0) chunks.push(COMMA);
    chunks.push(bytes);
    size += bytes.byteLength;
    count++;
    last = id;
  }
  chunks.push(Buffer.from(`],"nextCursor":${JSON.stringify(more ? last : null)}}`));
  return Buffer.concat(chunks);
}
