import { timestamp } from '#src/core/clock.ts';
import type { Principal } from '#src/core/principal.ts';
import { EventTicketSchema } from '#src/wire/event-ticket.ts';
import { EmptyBodySchema } from '#src/wire/shape.ts';
import { json } from '../reply/reply.ts';
import { defineRoute, type Route } from '../route.ts';

/** Issues tickets, each for one stream. */
export interface TicketIssuer {
  issue(
    principal: Principal,
    purpose: { readonly action: string; readonly sessionId: string },
  ): { readonly ticket: string; readonly expiresAtMs: number };
}

/** Throws `not_found` when the caller may not know the session. */
type RequireSession = (principal: Principal, sessionId: string) => void;

/** Tickets for the event streams of notebook sessions and of agent sessions. */
export function eventTicketRoutes(
  tickets: TicketIssuer,
  require: { readonly notebook: RequireSession; readonly agent: RequireSession },
): readonly Route[] {
  return [
    defineRoute({
      ...shared(tickets, 'session.read', '/api/v3/notebook-sessions', require.notebook),
      path: '/api/v3/notebook-sessions/:sessionId/event-tickets',
      operationId: 'createNotebookEventTicket',
      summary: 'Get a ticket for the events of a notebook session',
      tags: ['Notebook sessions'],
    }),
    defineRoute({
      ...shared(tickets, 'agent.read', '/api/v3/agent-sessions', require.agent),
      path: '/api/v3/agent-sessions/:sessionId/event-tickets',
      operationId: 'createAgentEventTicket',
      summary: 'Get a ticket for the events of an agent session',
      tags: ['Agent sessions'],
    }),
  ];
}

function shared(tickets: TicketIssuer, action: string, root: string, require: RequireSession) {
  return {
    method: 'POST',
    description:
      '`EventSource` in browsers sends no headers. Open it with the `url` of the ticket instead: it works once, within a ' +
      'minute, for this stream only, with your rights, and the stream ends when your token does. `EventSource` cannot ' +
      'reconnect with it: get another ticket then, and add `lastEventId` to its `url`.',
    access: { action },
    secretAnswer: true,
    body: EmptyBodySchema,
    optionalBody: true,
    responses: { 201: { description: 'The ticket. It is shown once.', schema: EventTicketSchema } },
    errors: ['not_found', 'quota_exceeded'],
    handle({ principal, params }: { principal: Principal; params: { readonly sessionId: string } }) {
      const { sessionId } = params;
      require(principal, sessionId);
      const { ticket, expiresAtMs } = tickets.issue(principal, { action, sessionId });
      const url = `${root}/${encodeURIComponent(sessionId)}/events?ticket=${ticket}`;
      return json(201, { ticket, url, expiresAt: timestamp(expiresAtMs) });
    },
  } as const;
}
