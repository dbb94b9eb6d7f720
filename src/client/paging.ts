import type { RequestOptions } from './connection.ts';

export interface Page<Item> {
  /** Oldest first. */
  readonly items: readonly Item[];
  /** The `after` of the next page; null at the end. */
  readonly nextCursor: string | null;
}

export interface PageOptions extends RequestOptions {
  /** Only items behind the one with this id. */
  readonly after?: string | undefined;
  /** Items on a page: 50 unless said otherwise, at most 100. */
  readonly limit?: number | undefined;
}

/** Every item of a list from `options.after` on; pages are asked for as they are needed. */
export async function* eachItem<Item>(
  pageAfter: (options: PageOptions) => Promise<Page<Item>>,
  options: PageOptions = {},
): AsyncGenerator<Item, void, undefined> {
  for (let after = options.after; ; ) {
    const { items, nextCursor } = await pageAfter({ ...options, after });
    yield* items;
    if (nextCursor === null) return;
    after = nextCursor;
  }
}
