/** The common parts of the charts of notebook sessions and of agent sessions. */

import type { Failure } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';

/** The announcements of a session: its new status and its closing. */
export type SessionNotice<Status extends string> =
  | { type: 'session.status'; status: Status; reason: string | null }
  | { type: 'session.closed'; reason: string; closedBy?: string };

/** The user who closed the session; null while it is open, and when it ended by itself. */
export interface Closer {
  readonly closedBy: string | null;
}

/** Returns the announcement that a session is closed. */
export function closedNotice({ closedBy }: Closer) {
  return {
    type: 'session.closed' as const,
    reason: 'closed',
    ...(closedBy === null ? {} : { closedBy }),
  };
}

/** Returns the failure of work that runs in a session while it is closed. */
export function sessionClosed({ closedBy }: Closer): Failure {
  const by = closedBy === null ? '' : ` by ${closedBy}`;
  return { code: 'session_closed', message: `The session was closed${by} while this was running.` };
}

/** The failure of work that has reached the deadline of its request. */
export const OUT_OF_TIME: Failure = {
  code: 'timed_out',
  message: 'This took longer than the `timeoutS` of its request, and was interrupted.',
};

/** The delay for work without a deadline: the longest that a timer of Node.js supports, about 24 days. */
export const NO_DEADLINE_MS = 2 ** 31 - 1;

/** Returns a stand-in for a port. It throws until the port is provided. */
export function unprovided(name: string): () => never {
  return () => {
    invariant(false, 'A chart that runs has all its ports.', name);
  };
}
