/** One piece of work whose cost is counted, with the counts. */
import type { Feed } from '../feed.ts';
import type { Vendor } from '../load/vendor.ts';
import type { LaunchedServer } from '../server.ts';

/** The repeated work of a scenario. */
export type UnitOfWork = Unit & (Alone | WithVendor);

interface Unit {
  /** The name of the unit, such as `run`. */
  readonly name: string;
  /** How many units are counted, in a full tally and in a quick one. */
  readonly count: number;
  readonly quickCount?: number;
  /** Settings of the server. */
  readonly environment?: Readonly<Record<string, string>>;
}

interface Alone {
  /** Prepares a server that does no other work. */
  prepare(server: LaunchedServer): Promise<PreparedWork>;
}

interface WithVendor {
  /** Prepares a server that asks a provider of models. */
  prepareWith(server: LaunchedServer, vendor: Vendor): Promise<PreparedWork>;
}

/** The work on one server. */
export interface PreparedWork {
  /** Does this many units. */
  perform(count: number): Promise<unknown>;
  /** A stream whose frames belong to the work. */
  readonly feed?: Feed;
}
