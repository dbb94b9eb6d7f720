import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { timestamp } from '#src/base/time/clock.ts';
import { pathOf } from '#src/contract/wire/paths.ts';
import { json } from '../reply/reply.ts';

/** Issues tickets. Each ticket is for one stream. */
export interface TicketIssuer {
  issue(
    principal: Principal,
    purpose: { readonly action: string; readonly sessionId: string },
  ): { readonly ticket: string; readonly expiresAtMs: number };
}

/** Returns whether the session is closed, without waking it. Throws `not_found` when the caller may not know of the session. */
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
      '`EventSource` in browsers sends no headers, so open it with the `url` of a ticket. A ticket opens this stream once, within a ' +
      'minute, with your rights; the stream ends when your token does. To reconnect, `EventSource` needs another ticket: ' +
      'add `lastEventId` to the `url` of that ticket. A closed session has no tickets, because ' +
      'it has no more events.',
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
  const detail = `The session ${sessionId} is closed and has no more events. To follow it, open the session again.`;
  return new AppError('session_closed', detail);
}
