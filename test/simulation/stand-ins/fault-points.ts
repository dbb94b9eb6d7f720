/** The moments between two steps of the server: a crash may come at each of them. */
import { world } from '../world/world.ts';

export function faultPoint(point: string): void {
  world().atFaultPoint?.(point);
}

export function faultPause(): undefined {
  return undefined;
}
