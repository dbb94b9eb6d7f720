import type { Migration } from './migrations/conversion.ts';
import { indexEndedRuns } from './migrations/index-ended-runs.ts';
import { indexForFinding } from './migrations/index-for-finding.ts';
import { indexUsersAndEnds } from './migrations/index-users-and-ends.ts';
import { partBySession } from './migrations/part-by-session.ts';
import { placeConversations } from './migrations/place-conversations.ts';

/** The format of the whole store: its keys and their meaning. Each record kind also has a version of its own. */
export interface StoreFormat {
  readonly version: number;
  /** `migrations[n - 1]` converts a store from format n to n + 1. */
  readonly migrations: readonly Migration[];
}

/**
 * Format 2 → 3: records carry a checksum, which older releases cannot read. Older records get a checksum when they
 * are next written.
 */
const acceptChecksums: Migration = () => [];

export const CURRENT_FORMAT: StoreFormat = {
  version: 7,
  migrations: [
    indexForFinding,
    acceptChecksums,
    indexEndedRuns,
    partBySession,
    placeConversations,
    indexUsersAndEnds,
  ],
};
