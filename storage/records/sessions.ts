import { timeText } from '#src/base/ids.ts';
import { defineMark, defineRecord } from '../codec.ts';

/**
 * Indexes of notebook sessions by the time at which they were last opened, oldest first. `place` is that time (fixed width)
 * and the session's id. A session is opened in a shared turn, in its home. Key: workspace id, place.
 */
export const sessionPlaces = defineMark('session-place');

/** The same index as `sessionPlaces`, but only of the sessions that are not closed. */
export const openSessionPlaces = defineMark('open-session-place');

/** Index of the environments that are not closed, oldest first. Written in shared turns. Key: workspace id, environment id. */
export const openEnvironments = defineMark('open-environment');

/** When an open session ends by itself, and the time of the next check. Times are milliseconds since 1970. */
export interface SessionEnd {
  /** When its lifetime is over; null for none. */
  readonly expiresMs: number | null;
  /** How long after its last use it ends; null for never. */
  readonly idleMs: number | null;
  /** The session's place in the index `sessionEndPlaces`. */
  readonly place: string;
  /**
   * Whether the place was computed from the last use of the session. Otherwise the session may have
   * been used since.
   */
  readonly isExact: boolean;
  /** Present once the session is being ended: its environment, which is closed next. */
  readonly endingIn?: string;
}

/** Written in the home of the session. Absent for sessions that do not end by themselves. Key: workspace id, session id. */
export const sessionEnds = defineRecord<SessionEnd>('session-end', 1);

/**
 * Index of `sessionEnds` by time, over all workspaces, so that no session is read before it is due. Key: `SYSTEM`, place: the time
 * (fixed width), the workspace's id and the session's id.
 */
export const sessionEndPlaces = defineMark('session-end-place');

const ENDS_SEPARATOR = ' ';

/** Returns the place of a session in `sessionEndPlaces` that is due at `ms`, in milliseconds since 1970. */
export function endPlaceOf(ms: number, workspaceId: string, sessionId: string): string {
  return [timeText(Math.ceil(ms)), workspaceId, sessionId].join(ENDS_SEPARATOR);
}

/** Returns the workspace and the session of a place in `sessionEndPlaces`. */
export function sessionAt(place: string): { readonly workspaceId: string; readonly sessionId: string } {
  const [, workspaceId = '', sessionId = ''] = place.split(ENDS_SEPARATOR);
  return { workspaceId, sessionId };
}

/** Returns a text that sorts after all places that are due at `ms`, and before all that are due later. */
export function endPlacesUntil(ms: number): string {
  return timeText(Math.floor(ms) + 1);
}
