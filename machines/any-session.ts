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

/** Returns the stand-in of a port, which throws until the port is provided. */
export function unprovided(name: string): () => never {
  return () => {
    throw new Error(`provide \`${name}\``);
  };
}
