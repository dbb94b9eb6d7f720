/** An actor in memory: the XState actor, with the facts that the runtime and operators need. */
import {
  Actor,
  type ActorOptions,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type ContextFrom,
  type SnapshotFrom,
} from 'xstate';
import type { ActorSnapshot } from '#storage/records/actor-snapshots.ts';
import type { ActorDefinition } from './actor-definition.ts';
import type { Address } from './address.ts';
import type { ShownContext } from './inspected-actor.ts';
import type { LiveActor } from './live-actors.ts';
import type { StoredForm } from './stored-form.ts';
import type { Trail } from './trail.ts';

/** An actor of one kind, in memory. */
export interface OwnActor<Machine extends AnyStateMachine> extends LiveActor {
  readonly ref: Actor<Machine>;
}

/** The initial state of an actor. */
interface Beginnings<Machine extends AnyStateMachine> {
  readonly address: Address;
  readonly from: Pick<ActorOptions<Machine>, 'input' | 'snapshot'>;
  readonly times: Pick<ActorSnapshot, 'createdAt' | 'updatedAt' | 'revision'>;
  readonly stored: StoredForm | undefined;
  readonly trail: Trail;
  readonly isPassing: boolean;
}

/** Returns an actor that is not started yet. `forget` is called when the actor leaves memory. */
export function ownActor<Machine extends AnyStateMachine>(
  definition: ActorDefinition<Machine>,
  { address, from, times: { createdAt, updatedAt, revision }, stored, trail, isPassing }: Beginnings<Machine>,
  forget: (actor: OwnActor<Machine>) => void,
): OwnActor<Machine> {
  const { machine, machineVersion } = definition;
  const ref = new Actor<Machine>(machine, from);
  const snapshot = (): AnyMachineSnapshot => ref.getSnapshot();
  const actor: OwnActor<Machine> = {
    address,
    machine: { id: machine.id, version: machineVersion },
    ref,
    trail,
    presence: 'live',
    isPassing,
    homeId: homeIdOf(definition, ref.getSnapshot()),
    isNoted: definition.isCounted === true ? false : undefined,
    get state() {
      return snapshot().value;
    },
    shown: () => shownContext(definition, snapshot().context),
    createdAt,
    updatedAt,
    revision,
    isStoredByOwner: definition.storedIn !== undefined,
    stored,
    uncommitted: undefined,
    forget: () => forget(actor),
  };
  return actor;
}

/** Returns the id of the home from an actor's snapshot; undefined for an actor that could not start and has no context. */
export function homeIdOf<Machine extends AnyStateMachine>(
  { homeOf }: ActorDefinition<Machine>,
  { status, context }: SnapshotFrom<Machine>,
): string | undefined {
  return status === 'error' ? undefined : homeOf?.(context);
}

/** Returns the part of a context that operators may see. */
export function shownContext<Machine extends AnyStateMachine>(
  { shown }: ActorDefinition<Machine>,
  context: ContextFrom<Machine>,
): ShownContext {
  return shown?.(context) ?? NOTHING_SHOWN;
}

const NOTHING_SHOWN: ShownContext = { links: [], context: {} };
