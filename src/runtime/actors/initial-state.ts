import { Actor, type AnyActorScope, type AnyStateMachine, type InputFrom, type SnapshotFrom } from 'xstate';

/**
 * Computes the first states of actors that are stored at once and need not be in memory. That costs a fifth of an XState actor,
 * which would be started, stopped and left to the garbage collector.
 */
export class InitialStates<Machine extends AnyStateMachine> {
  readonly #machine: Machine;
  #scope: AnyActorScope | undefined;
  #doesWork = false;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Returns the first state; undefined when the beginning does more than take a state, which needs an actor. */
  of(input: InputFrom<Machine>): SnapshotFrom<Machine> | undefined {
    this.#scope ??= this.#makeScope(input);
    this.#doesWork = false;
    const snapshot = this.#machine.getInitialSnapshot(this.#scope, input);
    const hasChildren = Object.keys(snapshot.children).length > 0;
    return this.#doesWork || hasChildren || snapshot.status !== 'active'
      ? undefined
      : (snapshot as SnapshotFrom<Machine>);
  }

  /** Returns a scope of an actor that is never started. */
  #makeScope(input: InputFrom<Machine>): AnyActorScope {
    const self = new Actor<Machine>(this.#machine, { input });
    const work = (): void => {
      this.#doesWork = true;
    };
    return {
      self,
      system: self.system,
      id: self.id,
      sessionId: self.sessionId,
      logger: work,
      defer: work,
      emit: work,
      stopChild: work,
      actionExecutor: work,
    };
  }
}
