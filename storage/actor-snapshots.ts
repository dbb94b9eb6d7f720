import { defineRecord } from './codec.ts';

/**
 * What is stored of an actor: the state it is in and the facts it holds. Children, timers and handles are not stored:
 * they belong to the process, and a restored actor makes its own.
 */
export interface ActorSnapshot {
  readonly machine: string;
  readonly machineVersion: number;
  /** Counts the transitions that were stored, so that two snapshots of one actor can be told apart. */
  readonly revision: number;
  readonly value: unknown;
  readonly context: unknown;
  readonly createdAt: string;
  readonly updatedAt: string;
}

/** Key: workspace id, actor kind, actor id. */
export const actorSnapshots = defineRecord<ActorSnapshot>('actor', 1);
