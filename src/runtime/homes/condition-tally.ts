/**
 * Counts the objects of one kind that an operator should look at, such as paused jobs, for the metrics of one worker. The tally owns
 * their index by condition. A change of an object moves the numbers, so reading them reads nothing from the store. Only the worker that is
 * the home of an object counts it.
 */

import type { MarkKind } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import { slotText } from '#storage/lists/timed-places.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { ActorId } from '../actors/address.ts';
import type { Cluster } from './cluster.ts';
import { type Home, SLOTS, slotOf } from './slots.ts';

/** The stored facts about one object. */
export interface ConditionFacts<Condition extends string> {
  readonly home: Home;
  /** Undefined while the object needs no operator. */
  readonly condition: Condition | undefined;
}

export interface ConditionTallyParts<Condition extends string> {
  readonly store: Pick<Store, 'list' | 'write'>;
  readonly cluster: Pick<Cluster, 'owns'>;
  /** The index. Key: `SYSTEM`, slot of the home (`slotText`), the workspace's id and the object's id in one text. */
  readonly index: MarkKind;
  readonly conditions: readonly Condition[];
  /** Reads the facts about an object from the store; undefined when it is gone. */
  readonly factsOf: (workspaceId: string, id: string) => ConditionFacts<Condition> | undefined;
}

/** An object with a condition. */
interface Counted<Condition extends string> {
  readonly slot: number;
  readonly condition: Condition;
}

/** The objects with a condition in one slot. */
interface SlotCounts<Condition extends string> {
  /** A home in the slot, by which the worker of the slot is found. */
  readonly home: Home;
  readonly counts: Map<Condition, number>;
}

const SEPARATOR = ' ';

export class ConditionTally<Condition extends string> {
  readonly #parts: ConditionTallyParts<Condition>;
  /** By the text of the object in the index. */
  readonly #objects = new Map<string, Counted<Condition>>();
  readonly #slots = new Map<number, SlotCounts<Condition>>();

  constructor(parts: ConditionTallyParts<Condition>) {
    this.#parts = parts;
  }

  /** Writes the new condition of an object. `condition` is undefined when the object has none any more, or is removed. */
  move(tx: Transaction, { workspaceId, id }: ActorId, home: Home, condition: Condition | undefined): void {
    const object = textOf(workspaceId, id);
    const entry = [SYSTEM, slotText(slotOf(home.workspaceId, home.id)), object] as const;
    if (condition === undefined) tx.remove(this.#parts.index, ...entry);
    else tx.mark(this.#parts.index, ...entry);
    this.#count(object, home, condition);
  }

  #count(object: string, home: Home, condition: Condition | undefined): void {
    this.#drop(object);
    if (condition === undefined) return;
    const slot = slotOf(home.workspaceId, home.id);
    const known = this.#slots.get(slot) ?? { home, counts: new Map<Condition, number>() };
    known.counts.set(condition, (known.counts.get(condition) ?? 0) + 1);
    this.#slots.set(slot, known);
    this.#objects.set(object, { slot, condition });
  }

  #drop(object: string): void {
    const counted = this.#objects.get(object);
    if (counted === undefined) return;
    this.#objects.delete(object);
    const { slot, condition } = counted;
    const counts = this.#slots.get(slot)?.counts;
    counts?.set(condition, (counts.get(condition) ?? 1) - 1);
  }

  /** Frees the memory of a deleted workspace. */
  forget(workspaceId: string): void {
    const own = textOf(workspaceId, '');
    for (const object of [...this.#objects.keys()]) if (object.startsWith(own)) this.#drop(object);
  }

  /**
   * Reads the conditions of the objects of this worker from the index. Call it when slots have come to this worker. Entries of
   * objects that are gone are removed.
   */
  load(): void {
    const { store, index } = this.#parts;
    const known = [...this.#objects.keys()];
    this.#objects.clear();
    this.#slots.clear();
    const all = { limit: Number.POSITIVE_INFINITY };
    for (let slot = 0; slot < SLOTS; slot++)
      for (const { id: object } of [...store.list(index, SYSTEM, [slotText(slot)], all)])
        if (!this.#read(object)) store.write((tx) => tx.remove(index, SYSTEM, slotText(slot), object));
    // The index shows committed entries. The condition of an object that has changed in this turn is in its record alone.
    for (const object of known) if (!this.#objects.has(object)) this.#read(object);
  }

  /** Counts an object by its stored condition if its home is here. Returns false when the object is gone. */
  #read(object: string): boolean {
    const [workspaceId = '', id = ''] = object.split(SEPARATOR);
    const facts = this.#parts.factsOf(workspaceId, id);
    if (facts === undefined) return false;
    const { home, condition } = facts;
    if (this.#parts.cluster.owns(home.workspaceId, home.id)) this.#count(object, home, condition);
    return true;
  }

  /** Returns how many objects of this worker have each condition. */
  counts(): ReadonlyMap<Condition, number> {
    const sum = new Map(this.#parts.conditions.map((condition) => [condition, 0]));
    for (const { home, counts } of this.#slots.values()) {
      if (!this.#parts.cluster.owns(home.workspaceId, home.id)) continue; // the slot has gone to another worker
      for (const [condition, count] of counts) sum.set(condition, (sum.get(condition) ?? 0) + count);
    }
    return sum;
  }
}

/**
 * Removes the entry of an object from the index of a `ConditionTally`, without counting. For an object of a deleted workspace, which no
 * worker counts any more.
 */
export function unlinkCondition(
  tx: Transaction,
  index: MarkKind,
  { workspaceId, id }: { readonly workspaceId: string; readonly id: string },
  home: Home,
): void {
  const slot = slotText(slotOf(home.workspaceId, home.id));
  tx.remove(index, SYSTEM, slot, textOf(workspaceId, id));
}

/** Returns the text of an object in the index. */
function textOf(workspaceId: string, id: string): string {
  return [workspaceId, id].join(SEPARATOR);
}
