import { defineRecord } from '../codec.ts';

/**
 * Indexes of notebook sessions by the time at which they were last opened, oldest first. `place` is that time (fixed width)
 * and the session's id. A session is opened in a shared turn, in its home. Key: workspace id, place.
 */
export const sessionPlaces = defineRecord<null>('session-place', 1);

/** As `sessionPlaces`, for the sessions that are not closed. */
export const openSessionPlaces = defineRecord<null>('open-session-place', 1);

/** Index of the environments that are not closed, oldest first. Written in shared turns. Key: workspace id, environment id. */
export const openEnvironments = defineRecord<null>('open-environment', 1);
