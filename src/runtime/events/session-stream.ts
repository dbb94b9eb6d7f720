import type { Envelope } from '#src/contract/wire/events.ts';
import { PublishedStream, type PublishedStreamOptions } from './published-stream.ts';

export interface SessionStreamOptions extends Omit<PublishedStreamOptions<Envelope>, 'replayed' | 'resync'> {
  readonly sessionId: string;
}

/** The event stream of one session: notebook or conversation. */
export class SessionStream extends PublishedStream<Envelope> {
  readonly sessionId: string;

  constructor({ sessionId, ...options }: SessionStreamOptions) {
    super({
      ...options,
      replayed: { type: 'session.replayed', sessionId, data: {} },
      resync: (reason) => ({ type: 'session.resync-required', sessionId, data: { reason } }),
    });
    this.sessionId = sessionId;
  }
}
