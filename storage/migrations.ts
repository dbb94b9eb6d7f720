import type { Migration } from './migrations/conversion.ts';

/** The format of the whole store: its keys and their meaning. Each record kind also has a version of its own. */
export interface StoreFormat {
  readonly version: number;
  /** `migrations[n - 1]` converts a store from format n to n + 1. */
  readonly migrations: readonly Migration[];
}

/**
 * Format 1 is the format of the first release, so nothing is converted yet. Under `--conditions=development` the tests replace
 * this module (see `imports` in package.json).
 */
export const CURRENT_FORMAT: StoreFormat = { version: 1, migrations: [] };
