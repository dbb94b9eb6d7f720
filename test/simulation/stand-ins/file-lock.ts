/** Locks on open files of simulated processes, as flock(2) has them: a lock belongs to a descriptor, and ends with its process. */
import { fstatSync } from 'node:fs';
import { type Life, world } from '../world/world.ts';

interface Held {
  readonly descriptor: number;
  readonly life: Life;
  readonly isShared: boolean;
}

/** By the number of the file. */
const locks = new Map<number, Held[]>();

/** Returns whether the descriptor has the lock now. */
function take(descriptor: number, isShared: boolean): boolean {
  const { ino } = fstatSync(descriptor);
  const others = (locks.get(ino) ?? []).filter((held) => held.descriptor !== descriptor && !held.life.isOver);
  if (others.some((held) => !isShared || !held.isShared)) return false;
  locks.set(ino, [...others, { descriptor, life: world().life, isShared }]);
  return true;
}

/** Releases the lock of a descriptor, if it has one. */
export function release(descriptor: number): void {
  for (const [ino, all] of locks) {
    const left = all.filter((held) => held.descriptor !== descriptor);
    if (left.length === 0) locks.delete(ino);
    else if (left.length < all.length) locks.set(ino, left);
  }
}

export async function loadFileLock(): Promise<(descriptor: number) => boolean> {
  return (descriptor) => take(descriptor, false);
}

export async function loadSharedFileLock(): Promise<object> {
  return {
    share: (descriptor: number) => take(descriptor, true),
    own: (descriptor: number) => take(descriptor, false),
    release,
  };
}
