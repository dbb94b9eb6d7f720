import { defineRecord } from '../codec.ts';

/** The verdict on the clock of the machine by which old records are deleted. All times are milliseconds since 1970. */
export interface RetentionClockRecord {
  /** The last check at which the clock was trusted; null when there was none. */
  readonly trustedAt: number | null;
  /** When the clock was first found to be ahead; null while it is trusted. */
  readonly heldSince: number | null;
  readonly checkedAt: number;
  /** For how long the server has run with the clock that is ahead, in milliseconds. */
  readonly ranMs: number;
}

/** Written in shared turns. Key: SYSTEM. */
export const retentionClock = defineRecord<RetentionClockRecord>('retention-clock', 1);
