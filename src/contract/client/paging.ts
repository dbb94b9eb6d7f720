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
