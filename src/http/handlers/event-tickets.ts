import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { json } from '../reply/reply.ts';

/** Issues tickets, each for one stream. */
export interface TicketIssuer {
  issue(
    principal: Principal,
    purpose: { readonly action: string; readonly sessionId: string },
  ): { readonly ticket: string; readonly expiresAtMs: number };
}

/** Returns whether the session is closed. Throws `not_found` when the caller may not know of it. Wakes nothing. */
type IsClosed = (principal: Principal, sessionId: string) => boolean;

interface TicketRequest {
  readonly principal: Principal;
  readonly params: { readonly sessionId: string };
}

/**
 * Returns the description and handler that both kinds of session share for tickets. `stream` is the operation that follows the
 * session.
 */
export function eventTicketHandling({
  tickets,
  action,
  stream,
  isClosed,
}: {
  readonly tickets: TicketIssuer;
  readonly action: string;
  readonly stream: 'followNotebookSession' | 'followAgentSession';
  readonly isClosed: IsClosed;
}) {
  return {
    description:
      '`EventSource` in browsers sends no headers. Open it with the `url` of the ticket instead: it works once, within a ' +
      'minute, for this stream only, with your rights, and the stream ends when your token does. `EventSource` cannot ' +
      'reconnect with it: get another ticket then, and add `lastEventId` to its `url`. A closed session has no tickets: ' +
      'nothing will happen in it any more.',
    access: { action },
    secretAnswer: true,
    whileReadOnly: true, // a ticket is in memory only
    errors: ['not_found', 'session_closed', 'quota_exceeded'],
    checkAccess({ principal, params }: TicketRequest) {
      isClosed(principal, params.sessionId);
    },
    handle({ principal, params }: TicketRequest) {
      const { sessionId } = params;
      if (isClosed(principal, sessionId)) throw closed(sessionId);
      const { ticket, expiresAtMs } = tickets.issue(principal, { action, sessionId });
      const url = `${pathOf(stream, { sessionId })}?ticket=${ticket}`;
      return json(201, { ticket, url, expiresAt: timestamp(expiresAtMs) });
    },
  } as const;
}

function closed(sessionId: string): AppError {
  const detail = `The session ${sessionId} is closed, so nothing will happen on its stream. To follow it, open it again.`;
  return new AppError('session_closed', detail);
}
