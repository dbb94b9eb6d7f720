import type { Store } from './store.ts';

/** The format of the whole store: which keys exist and what they mean. Versions of single values are in their kinds. */
export interface StoreFormat {
  readonly version: number;
  /** `migrations[n - 1]` brings a store from format n to n + 1. It may run again after a crash: it must be idempotent. */
  readonly migrations: readonly ((store: Store) => Promise<void>)[];
}

export const CURRENT_FORMAT: StoreFormat = { version: 1, migrations: [] };
