import { unlessDamaged } from '../damaged.ts';
import type { Entry } from './committed-records.ts';

/** One page of a list. */
export interface Listing<T> {
  readonly items: readonly T[];
  /** The `after` of the next page; null when there are no more items. */
  readonly nextCursor: string | null;
}

/**
 * The most entries that are skipped for one page because they are not items. The page is then
 * short, and its cursor continues after them.
 */
export const MAX_PASSED_ENTRIES = 2_000;

/** A page that would have more bytes ends early; its `nextCursor` then names its last item. */
export const MAX_PAGE_BYTES = 16 * 1024 * 1024;

/** The callbacks that make up a page. */
export interface PageShape<R, T> {
  readonly limit: number;
  /** Returns undefined for an entry that is not an item. */
  readonly itemOf: (value: R, id: string) => T | undefined;
  /** How many entries that are not items are skipped at most. */
  readonly maxPassed?: number;
  /** Returns the bytes of an item, of which a page has at most `MAX_PAGE_BYTES`. Without it they do not count. */
  readonly sizeOf?: (item: T) => number;
}

/** Collects the first items of a list until they are a page. */
export class PageBuilder<R, T> {
  readonly #shape: PageShape<R, T>;
  readonly #items: T[] = [];
  #last: string | undefined;
  #passed = 0;
  #size = 0;
  #isFull = false;

  /** `after` is the cursor that the list is read from. */
  constructor(shape: PageShape<R, T>, after?: string) {
    this.#shape = shape;
    this.#last = after;
  }

  /** The entry that was taken last. */
  get last(): string | undefined {
    return this.#last;
  }

  /**
   * Takes entries until the page is complete or the clock of `performance.now()` has passed
   * `untilMs`. Takes at least one entry. Returns whether the page is complete.
   */
  take(entries: Iterable<Entry<R>>, untilMs = Number.POSITIVE_INFINITY): boolean {
    const isBounded = untilMs !== Number.POSITIVE_INFINITY;
    for (const { id, value } of entries) {
      if (!this.#add(value, id)) {
        this.#isFull = true;
        return true;
      }
      this.#last = id;
      if (isBounded && performance.now() >= untilMs) return false;
    }
    return true;
  }

  get listing(): Listing<T> {
    return { items: this.#items, nextCursor: this.#isFull ? (this.#last ?? null) : null };
  }

  /** Returns false when the page is full without this entry. */
  #add(value: R, id: string): boolean {
    const { limit, itemOf, maxPassed = MAX_PASSED_ENTRIES, sizeOf } = this.#shape;
    if (this.#passed === maxPassed) return false;
    const item = unlessDamaged(() => itemOf(value, id));
    if (item === undefined) {
      this.#passed++;
      return true;
    }
    if (this.#items.length === limit) return false;
    this.#size += sizeOf?.(item) ?? 0;
    if (this.#items.length > 0 && this.#size > MAX_PAGE_BYTES) return false;
    this.#items.push(item);
    return true;
  }
}
