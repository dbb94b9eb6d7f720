import { defineRecord } from '../codec.ts';

/**
 * The stored form of an actor: its state and its context. Children, timers and handles are not stored, because they
 * belong to the process: a restored actor creates its own.
 */
export interface ActorSnapshot {
  readonly machine: string;
  readonly machineVersion: number;
  /** The number of stored transitions, which distinguishes two snapshots of one actor. */
  readonly revision: number;
  readonly value: unknown;
  readonly context: unknown;
  readonly createdAt: string;
  readonly updatedAt: string;
  /**
   * The worker that had the actor in memory, if the server has several and the actor owned a live
   * resource.
   */
  readonly owner?: string;
}

/** Key: workspace id, actor kind, actor id. */
export const actorSnapshots = defineRecord<ActorSnapshot>('actor', 1);

/**
 * The actors that own a live resource, of the kinds that are counted, in a server of several
 * workers. The value names the worker. Key: SYSTEM, actor kind, workspace id, actor id.
 */
export const residentActors = defineRecord<string>('resident-actor', 1);
