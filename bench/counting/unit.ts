/** One piece of work whose cost is counted, and what is counted of it. */
import type { Feed } from '../feed.ts';
import type { LaunchedServer } from '../server.ts';

/** What a scenario does many times. */
export interface UnitOfWork {
  /** What it is, such as `run`. */
  readonly name: string;
  /** How many are counted, of a whole and of a quick tally. */
  readonly count: number;
  readonly quickCount?: number;
  /** Prepares a server that does nothing else. */
  prepare(server: LaunchedServer): Promise<PreparedWork>;
}

/** The work on one server. */
export interface PreparedWork {
  /** Does this many units. */
  perform(count: number): Promise<unknown>;
  /** A stream whose frames belong to the work. */
  readonly feed?: Feed;
}
