/** The common parts of the charts of notebook sessions and of agent sessions. */
import type { Failure } from '#src/core/errors.ts';

/** The announcements of a session: its new status, and that it is closed. */
export type SessionNotice<Status extends string> =
  | { type: 'session.status'; status: Status; reason: string | null }
  | { type: 'session.closed'; reason: string };

/** The failure of work that runs in a session while it is closed. */
export const SESSION_CLOSED: Failure = {
  code: 'session_closed',
  message: 'The session was closed while this was running.',
};

/** The failure of work that has reached the deadline of its request. */
export const OUT_OF_TIME: Failure = {
  code: 'timed_out',
  message: 'This took longer than the `timeoutS` of its request, and was interrupted.',
};

/** The delay of a deadline that is not set: the longest that a timer of Node.js has, some 24 days. */
export const NO_DEADLINE_MS = 2 ** 31 - 1;

/** Returns the stand-in of a port, which throws until the port is provided. */
export function unprovided(name: string): () => never {
  return () => {
    throw new Error(`provide \`${name}\``);
  };
}
