/**
 * The facts that a worker learns from its primary: its own number, the list of workers, and the
 * owner of each slot. The two are connected by the channel that Node.js makes between a process and
 * its child (`primary-link.ts`).
 */

import type { SlotTable } from '#src/runtime/homes/slots.ts';
import type { Details, PrimaryAnswers, Question } from '../messages.ts';

export interface ClusterChannel {
  /** The number of this worker. A worker that replaces another one has a number that no worker had before. */
  readonly worker: number;
  /** How many workers the server should have. */
  readonly size: number;
  /** 32 random bytes that only the processes of this server know. They are new with each start of the server. */
  readonly secret: Uint8Array;
  /** Whether this worker has inherited a unix socket for proxies. */
  readonly servesProxies: boolean;
  /** The newest table that this worker has received. It contains this worker once it has joined. */
  readonly table: SlotTable;
  /** Whether the primary has sent nothing for two seconds. */
  readonly isPrimarySilent: boolean;
  /** Returns the path of the unix socket at which a worker listens for the others. */
  socketPath(worker: number): string;
  /**
   * Calls `listener` with each later table. Once all listeners have returned, the primary learns that this worker has the table.
   */
  onTable(listener: (table: SlotTable) => void): void;
  /**
   * Sets how this worker gives up slots. `release` resolves with at most `count` slots without live actors, once all earlier work
   * for these slots is on disk. Until the next table, this worker accepts no new work for them.
   */
  onReleaseAsked(release: (count: number) => Promise<readonly number[]>): void;
  /** Asks the primary. The promise stays pending only if one of the two processes ends. */
  ask<Asked extends Question>(question: Asked, ...details: Details<Asked>): Promise<PrimaryAnswers[Asked]>;
  /**
   * Reports that this worker listens at its `socketPath` and has its store open. Resolves with the port for clients, once every
   * other worker knows of this one.
   */
  join(): Promise<number>;
  /**
   * Reports that this draining worker has ended all its work and has notified its subscribers. Resolves once the other draining
   * workers have done the same, because their last events may reach clients through this one.
   */
  suspended(): Promise<void>;
}
