import type { Store } from './store.ts';

/** The format of the whole store: which keys exist and what they mean. Versions of single values are in their kinds. */
export const FORMAT_VERSION = 1;

/** `MIGRATIONS[n - 1]` brings a store from format n to n + 1. It may run again after a crash, so it must be idempotent. */
export const MIGRATIONS: readonly ((store: Store) => Promise<void>)[] = [];
