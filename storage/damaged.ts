/** Reads records that may be damaged. One damaged record must not make others unavailable. */
import { DamagedRecord } from './codec.ts';

/** Takes the place of a damaged record where a damaged record is not treated as a missing one. */
export const DAMAGED = Symbol('damaged');

/** Returns the result of `read`, or undefined when a record that it reads is damaged, as if the record were missing. */
export function unlessDamaged<T>(read: () => T): T | undefined {
  const value = readOrDamaged(read);
  return value === DAMAGED ? undefined : value;
}

/** Returns the result of `read`, or `DAMAGED` when a record that it reads is damaged. */
export function readOrDamaged<T>(read: () => T): T | typeof DAMAGED {
  try {
    return read();
  } catch (error) {
    if (error instanceof DamagedRecord) return DAMAGED;
    throw error;
  }
}
