/** What becomes of a record that is not what was written: one damaged record must not cost more than itself. */
import { DamagedRecord } from './codec.ts';

/** Stands for a record that is not what was written, where that is not the same as a missing one. */
export const DAMAGED = Symbol('damaged');

/** Returns what `read` returns, and undefined when a record that it reads is damaged: it counts as missing. */
export function unlessDamaged<T>(read: () => T): T | undefined {
  const value = readOrDamaged(read);
  return value === DAMAGED ? undefined : value;
}

/** Returns what `read` returns, and `DAMAGED` when a record that it reads is. */
export function readOrDamaged<T>(read: () => T): T | typeof DAMAGED {
  try {
    return read();
  } catch (error) {
    if (error instanceof DamagedRecord) return DAMAGED;
    throw error;
  }
}
