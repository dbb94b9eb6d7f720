import { AppError } from '#src/base/errors/errors.ts';
import { firstIdAt, type IdKind, timeText } from '#src/base/ids.ts';
import type { CommittedPage, Entry } from './committed-records.ts';
import { type Listing, PageBuilder } from './page-builder.ts';

export type Order = 'asc' | 'desc';

/** Which page of a list to return. */
export interface PageRequest {
  /** The cursor at the end of the previous page; undefined for the first page. */
  readonly after?: string | undefined;
  readonly limit: number;
  /** `asc`, the default, begins with the oldest item, `desc` with the newest. */
  readonly order?: Order | undefined;
  /** Aborts when the page is no longer wanted. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The part of a list whose ids are between two bounds. No entry need have the id of a bound. An absent bound is no
 * limit.
 */
export interface Bounds {
  readonly low?: string | undefined;
  readonly high?: string | undefined;
}

/**
 * Limits a list to objects that were created after one time and before the other, both RFC 3339.
 */
export interface CreationTimes {
  readonly createdAfter?: string | undefined;
  readonly createdBefore?: string | undefined;
}

/** Returns the bounds of the ids of this kind that were made in that time. */
export function idBounds(kind: IdKind, times: CreationTimes): Bounds {
  return timeBounds(times, (ms) => firstIdAt(kind, ms));
}

/**
 * Returns the bounds of a list that is sorted by time; `first` returns a key that sorts before all items of that
 * millisecond. Throws `invalid_request` for an invalid time.
 */
export function timeBounds(
  { createdAfter, createdBefore }: CreationTimes,
  first: (ms: number) => string,
): Bounds {
  return {
    low: createdAfter === undefined ? undefined : first(millisecondsOf('createdAfter', createdAfter) + 1),
    high: createdBefore === undefined ? undefined : first(millisecondsOf('createdBefore', createdBefore)),
  };
}

/** Limits a list to objects that ended at one time or later, and before the other, both RFC 3339. */
export interface EndTimes {
  readonly finishedAfter?: string | undefined;
  readonly finishedBefore?: string | undefined;
}

/** Returns the bounds of a list of places by end (`places.ts`). Throws `invalid_request` for an invalid time. */
export function endBounds({ finishedAfter, finishedBefore }: EndTimes): Bounds {
  const bound = (name: string, text: string | undefined) =>
    text === undefined ? undefined : timeText(millisecondsOf(name, text));
  return { low: bound('finishedAfter', finishedAfter), high: bound('finishedBefore', finishedBefore) };
}

/**
 * Throws `invalid_request` for a time that RFC 3339 allows but JavaScript cannot represent, such as
 * a leap second.
 */
function millisecondsOf(name: string, text: string): number {
  const ms = Date.parse(text);
  if (!Number.isNaN(ms)) return ms;
  throw new AppError('invalid_request', `There is no such time as ${text}.`, {
    errors: [{ path: `query/${name}`, message: 'is no point in time' }],
  });
}

/** Returns how the store reads the list from a cursor on, in the requested order and within the bounds. */
export function pageOf(
  { after, order = 'asc' }: Omit<PageRequest, 'limit'>,
  { low, high }: Bounds = {},
): CommittedPage {
  const reverse = order === 'desc';
  const [first, until] = reverse ? [high, low] : [low, high];
  const isFurther = after !== undefined && (first === undefined || (reverse ? after < first : after > first));
  return { after: isFurther ? after : first, until, reverse, limit: Number.POSITIVE_INFINITY };
}

/**
 * Returns a page of the first `limit` items. `itemOf` returns undefined for an entry that is not an item. `entries` must
 * yield at least one more when there are more.
 */
export function listingOf<R, T>(
  entries: Iterable<Entry<R>>,
  limit: number,
  itemOf: (value: R, id: string) => T | undefined,
): Listing<T> {
  const page = new PageBuilder({ limit, itemOf });
  page.take(entries);
  return page.listing;
}

/**
 * Throws `invalid_cursor` unless the cursor has the form of this list's cursors. The cursor's item
 * need not exist any more.
 */
export function checkCursor(after: string | undefined, isCursor: (text: string) => boolean): void {
  if (after !== undefined && !isCursor(after)) {
    throw new AppError('invalid_cursor', 'Pass the `nextCursor` of a page of this list.');
  }
}

/**
 * Merges two lists that are sorted in the same way into one. Both lists are closed
 * when the reader stops early, because an open list holds an LMDB snapshot.
 */
export function* mergedEntries<T>(
  left: Generator<Entry<T>>,
  right: Generator<Entry<T>>,
  order: Order = 'asc',
): Generator<Entry<T>> {
  const isFirst = (a: string, b: string) => (order === 'asc' ? a < b : a > b);
  try {
    let [a, b] = [left.next(), right.next()];
    while (!a.done || !b.done) {
      if (b.done || (!a.done && isFirst(a.value.id, b.value.id))) {
        if (!a.done) yield a.value;
        a = left.next();
      } else {
        yield b.value;
        b = right.next();
      }
    }
  } finally {
    left.return(undefined);
    right.return(undefined);
  }
}
