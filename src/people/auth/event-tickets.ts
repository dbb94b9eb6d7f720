import { randomBytes } from 'node:crypto';
import type { Principal } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { slotOf } from '#src/runtime/homes/slots.ts';
import type { Authenticator } from './authenticator.ts';
import { tokenHash } from './token-secret.ts';

/** The one stream that a ticket opens: its session, and the action for which the caller needs permission. */
export interface TicketPurpose {
  readonly action: string;
  readonly sessionId: string;
}

export interface IssuedTicket {
  readonly ticket: string;
  readonly expiresAtMs: number;
}

interface Ticket extends TicketPurpose {
  readonly principal: Principal;
  readonly expiresAtMs: number;
}

const LIFE_MS = 60_000;
const RANDOM_BYTES = 32;
/** The most unused tickets of one access token, in each worker. */
const MAX_PER_TOKEN = 100;

/**
 * Tickets for event streams, because a browser's `EventSource` sends no headers. A ticket opens one stream once,
 * within a minute, with the rights of the caller who asked for it. That caller's token and membership must still be
 * valid. Tickets are kept in memory, by their hashes, and a restart discards them. The text of a ticket names the
 * slot of its session, so every worker knows which worker has the ticket in memory.
 */
export class EventTickets {
  readonly #authenticator: Authenticator;
  /** Tickets by hash, in the order in which they expire. */
  readonly #tickets = new Map<string, Ticket>();
  readonly #countOf = new Map<string, number>();

  constructor(authenticator: Authenticator) {
    this.#authenticator = authenticator;
  }

  /** Returns a new ticket. Throws `quota_exceeded` when the caller's token has too many unused tickets. */
  issue(
    principal: Principal,
    { action, sessionId }: TicketPurpose,
    nowMs: number = Date.now(),
  ): IssuedTicket {
    this.#dropExpired(nowMs);
    const count = this.#countOf.get(principal.tokenId) ?? 0;
    if (count >= MAX_PER_TOKEN) {
      const detail = `An access token may have at most ${MAX_PER_TOKEN} unused tickets.`;
      throw new AppError('quota_exceeded', detail, { headers: { 'retry-after': String(LIFE_MS / 1000) } });
    }
    const slot = slotOf(principal.workspaceId, sessionId).toString(16).padStart(2, '0');
    const ticket = `tkt_${slot}_${randomBytes(RANDOM_BYTES).toString('base64url')}`;
    const expiresAtMs = nowMs + LIFE_MS;
    this.#tickets.set(tokenHash(ticket), { principal, action, sessionId, expiresAtMs });
    this.#countOf.set(principal.tokenId, count + 1);
    return { ticket, expiresAtMs };
  }

  /**
   * Returns the caller who asked for the ticket, with the present role. This uses the ticket up, even when it is refused. Throws
   * `unauthenticated` when the ticket is unknown or for another stream, and the error that a request of the caller would get now.
   */
  redeem(text: string, { action, sessionId }: TicketPurpose, nowMs: number = Date.now()): Principal {
    const hash = tokenHash(text);
    const ticket = this.#tickets.get(hash);
    if (ticket !== undefined) this.#drop(hash, ticket);
    const isGood = ticket !== undefined && ticket.expiresAtMs > nowMs;
    if (!isGood || ticket.action !== action || ticket.sessionId !== sessionId) {
      throw new AppError('unauthenticated', 'The ticket was used, has expired, or is for another stream.');
    }
    return this.#authenticator.renewPrincipal(ticket.principal, action);
  }

  #dropExpired(nowMs: number): void {
    for (const [hash, ticket] of this.#tickets) {
      if (ticket.expiresAtMs > nowMs) return;
      this.#drop(hash, ticket);
    }
  }

  #drop(hash: string, { principal }: Ticket): void {
    this.#tickets.delete(hash);
    const count = (this.#countOf.get(principal.tokenId) ?? 1) - 1;
    if (count > 0) this.#countOf.set(principal.tokenId, count);
    else this.#countOf.delete(principal.tokenId);
  }
}

/** Returns the slot of the session that a ticket is for; undefined for a text that is not a ticket. */
export function slotOfTicket(text: string): number | undefined {
  const [, slot] = /^tkt_([0-9a-f]{2})_/.exec(text) ?? [];
  return slot === undefined ? undefined : Number.parseInt(slot, 16);
}
