/**
 * Joins events of actors during a short interval. All transitions of one actor become one event, and so do repeated refusals of
 * one command. Followers then get one event instead of a thousand transitions.
 */
import type { ActorChange, LeftAs } from './actor-watch.ts';
import { type Address, addressText } from './address.ts';
import type { Inspectable } from './inspected-actor.ts';
import { statePath } from './state-path.ts';

/** The events of one actor since the last report, with the state of the actor when the report is read. */
export interface MovedActor {
  readonly type: 'moved';
  readonly address: Address;
  readonly actor: Inspectable;
  /** The state before; undefined when the actor came into memory. */
  readonly from: unknown;
  /** The types of the events, or of the last events if there were many. */
  readonly events: string[];
}

/** A command that a state refused once or more often. */
export interface RefusedEvent {
  readonly type: 'refused';
  readonly address: Address;
  readonly state: string;
  readonly event: string;
  readonly code: string;
  count: number;
}

export interface Left {
  readonly type: 'left';
  readonly address: Address;
  readonly state: string;
  readonly presence: LeftAs;
}

export type JoinedChange = MovedActor | RefusedEvent | Left;

const MAX_NAMED_EVENTS = 16;

export class ActorChanges {
  /** The moves, in the order in which each began. */
  #changes: JoinedChange[] = [];
  /** Changes by the address of their actor. */
  readonly #moves = new Map<string, MovedActor>();
  /** Refusals by address, event, code and state. */
  readonly #refusals = new Map<string, RefusedEvent>();

  get count(): number {
    return this.#changes.length;
  }

  add(change: ActorChange): void {
    if (change.type === 'moved') this.#move(change);
    else if (change.type === 'refused') this.#refuse(change);
    else {
      const { actor, presence } = change;
      // The actor may come back. Its later events must then follow the event of its leaving.
      this.#moves.delete(addressText(actor.address));
      this.#changes.push({ type: 'left', address: actor.address, state: statePath(actor.state), presence });
    }
  }

  /** Returns the events since the last call. */
  take(): readonly JoinedChange[] {
    const taken = this.#changes;
    this.#changes = [];
    this.#moves.clear();
    this.#refusals.clear();
    return taken;
  }

  #move({ actor, event, from }: Extract<ActorChange, { type: 'moved' }>): void {
    const text = addressText(actor.address);
    let move = this.#moves.get(text);
    if (move === undefined) {
      move = { type: 'moved', address: actor.address, actor, from, events: [] };
      this.#moves.set(text, move);
      this.#changes.push(move);
    }
    if (event === undefined) return;
    move.events.push(event);
    if (move.events.length > MAX_NAMED_EVENTS) move.events.shift();
  }

  #refuse({
    actor: { address, state: value },
    event,
    code,
  }: Extract<ActorChange, { type: 'refused' }>): void {
    const state = statePath(value);
    const key = `${addressText(address)} ${event} ${code} ${state}`;
    const known = this.#refusals.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    const refused: RefusedEvent = { type: 'refused', address, state, event, code, count: 1 };
    this.#refusals.set(key, refused);
    this.#changes.push(refused);
  }
}
