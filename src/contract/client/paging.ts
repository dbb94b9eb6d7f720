import type { Page } from '../wire/shape.ts';
import type { RequestOptions } from './connection.ts';

export interface PageOptions extends RequestOptions {
  /** The `nextCursor` of the page before; undefined for the first page. */
  readonly after?: string | undefined;
  /** The largest number of items on a page: 50 by default, at most 100. Datasources come all at once by default. */
  readonly limit?: number | undefined;
}

export interface OrderedPageOptions extends PageOptions {
  /** `asc`, the default, begins with the oldest item, `desc` with the newest. */
  readonly order?: 'asc' | 'desc' | undefined;
}

/** Yields every item of a list after `options.after`. Pages are requested as they are needed. */
export async function* eachItem<Item, Options extends PageOptions>(
  pageAfter: (options: Options) => Promise<Page<Item>>,
  options: Options,
): AsyncGenerator<Item, void, undefined> {
  for (let after = options.after; ; ) {
    const { items, nextCursor } = await pageAfter({ ...options, after });
    yield* items;
    if (nextCursor === null) return;
    after = nextCursor;
  }
}
