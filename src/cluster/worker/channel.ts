/**
 * A worker's knowledge from its primary: its own number, the list of workers, and all homes. The two are connected by
 * the channel that Node.js makes between a process and its child (`primary-link.ts`).
 */
import type { PrimaryAnswers, Question } from '../messages.ts';
import type { SlotTable } from '../slots.ts';

export interface ClusterChannel {
  /** The number of this worker. A worker that replaces another one has a number that no worker had before. */
  readonly worker: number;
  /** How many workers the server should have. */
  readonly size: number;
  /** 32 random bytes that only the processes of this server know. They are new with each start of the server. */
  readonly secret: Uint8Array;
  /** The newest table that this worker has received. It contains this worker once it has joined. */
  readonly table: SlotTable;
  /** Whether nothing was heard of the primary for two seconds. */
  readonly isPrimarySilent: boolean;
  /** Returns the path of the unix socket at which a worker listens for the others. */
  socketPath(worker: number): string;
  /** Calls `listener` with each later table. The primary learns that this worker has it once all listeners have returned. */
  onTable(listener: (table: SlotTable) => void): void;
  /**
   * Declares how this worker gives up slots: `release` returns at most `count` slots of its own that nothing lives in. It
   * takes nothing for them from then on, until the next table: that one either gives them to another worker or leaves them.
   * Resolves once all that it did for them is on disk.
   */
  onReleaseAsked(release: (count: number) => Promise<readonly number[]>): void;
  /** Asks the primary. The answer is missing only if one of the two processes ends. */
  ask<Asked extends Question>(question: Asked): Promise<PrimaryAnswers[Asked]>;
  /**
   * Says that this worker listens at its `socketPath` and has its store open. Resolves with the port on which it is to listen
   * for clients, once every other worker knows of it.
   */
  join(): Promise<number>;
  /**
   * Reports that this draining worker has ended everything that ran in it and has notified its subscribers. Resolves
   * once the other draining workers have done so as well, because their last events may reach clients through this one.
   */
  suspended(): Promise<void>;
}
