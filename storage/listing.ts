import { AppError } from '#src/core/errors.ts';
import type { Entry } from './store.ts';

export interface PageRequest {
  /** Only items behind the one with this id. */
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface Listing<T> {
  readonly items: readonly T[];
  /** The `after` of the next page; null at the end. */
  readonly nextCursor: string | null;
}

/** A page of the first `limit` entries; one more among them is the sign that there are others. */
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

export function invalidCursor(): AppError {
  return new AppError('invalid_cursor', 'The cursor is not the id of an item of this list.');
}
