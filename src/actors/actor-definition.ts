/** What makes a kind of actor, and what can be known of one of its actors. */
import type { AnyStateMachine, ContextFrom, EventFromLogic, SnapshotFrom } from 'xstate';
import type { ShownContext } from './inspected-actor.ts';

/** One kind of actor. */
export interface ActorDefinition<Machine extends AnyStateMachine> {
  readonly kind: string;
  /** The chart with every port provided. */
  readonly machine: Restorable<SnapshotFrom<Machine>> & Machine;
  /** The version that snapshots are stored with. A stored snapshot of another version is not read. */
  readonly machineVersion: number;
  /** Sent to an actor that comes back from its stored snapshot, if its state takes the event. */
  readonly restored?: EventFromLogic<Machine>;
  /** Returns what operators may see of a context. Absent: nothing. */
  readonly shown?: (context: ContextFrom<Machine>) => ShownContext;
}

/** States the type that XState's `resolveState` returns: a generic machine has lost it. */
interface Restorable<Snapshot> {
  resolveState(stored: { value: unknown; context: unknown }): Snapshot;
}

/** What can be known of an actor without restoring it. */
export interface Peek<Machine extends AnyStateMachine = AnyStateMachine> {
  readonly snapshot: SnapshotFrom<Machine>;
  /** Whether it is in memory. A resident state that is not live was left behind by a server that died. */
  readonly live: boolean;
  readonly createdAt: string;
  readonly updatedAt: string;
}
