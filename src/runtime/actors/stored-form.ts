/** The stored form of an actor, and the rule which moves need not be stored. */
import type { AnyMachineSnapshot } from 'xstate';
import type { ActorSnapshot } from '#storage/records/actor-snapshots.ts';

export type StoredForm = Pick<ActorSnapshot, 'value' | 'context'>;

/** The tag of states that are not stored, because a restart treats them like the state before them. */
const UNSTORED = 'unstored';

/**
 * Returns whether an actor need not be stored: it equals its stored form, or its state is tagged `unstored`. Members of the context
 * are compared by identity.
 */
export function needsNoStoring(snapshot: AnyMachineSnapshot, stored: StoredForm | undefined): boolean {
  if (stored === undefined || snapshot.status !== 'active') return false;
  if (snapshot.hasTag(UNSTORED)) return true;
  return isSameValue(snapshot.value, stored.value) && isSameContext(snapshot.context, stored.context);
}

function isSameValue(one: unknown, other: unknown): boolean {
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null)
    return one === other;
  return sameMembers(one, other, isSameValue);
}

function isSameContext(one: unknown, other: unknown): boolean {
  return one === other || sameMembers(Object(one), Object(other), Object.is);
}

function sameMembers(one: object, other: object, isSame: (a: unknown, b: unknown) => boolean): boolean {
  const [members, others] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const names = Object.keys(members);
  if (names.length !== Object.keys(others).length) return false;
  for (const name of names)
    if (!Object.hasOwn(others, name) || !isSame(members[name], others[name])) return false;
  return true;
}
