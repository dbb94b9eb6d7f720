/**
 * Places by time: the entries of an index of objects that need attention at a time, in each slot of homes. A worker reads the places
 * of its own slots alone. Key: `SYSTEM`, slot (`slotText`), place: the time (fixed width), the workspace's id and the object's id.
 */
import { timeText } from '#src/base/ids.ts';

const SEPARATOR = ' ';

/** Returns the text of a slot of homes in keys. */
export function slotText(slot: number): string {
  return slot.toString(16).padStart(2, '0');
}

/** Returns the slot of a text of `slotText`. */
export function slotOfText(text: string): number {
  return Number.parseInt(text, 16);
}

/** Returns the place of an object that needs attention at `ms`, in milliseconds since 1970. */
export function timedPlaceOf(ms: number, workspaceId: string, id: string): string {
  return [timeText(ms), workspaceId, id].join(SEPARATOR);
}

/** Returns the workspace and the id of a place. */
export function timedPlaceAt(place: string): { readonly workspaceId: string; readonly id: string } {
  const [, workspaceId = '', id = ''] = place.split(SEPARATOR);
  return { workspaceId, id };
}

/** Returns a text that sorts after all places that are due at `ms`, and before all that are due later. */
export function timedPlacesUntil(ms: number): string {
  return timeText(ms + 1);
}
