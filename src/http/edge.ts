import type { Auth } from '#src/core/principal.ts';
import type { OpenStreams } from './event-stream.ts';
import type { GuessGuard } from './guess-guard.ts';
import type { Idempotency } from './idempotency.ts';
import type { PendingAnswer } from './late-answer.ts';
import type { EdgeLog } from './problem.ts';

export type Observe = <T>(read: () => T) => {
  readonly result: T;
  readonly uncommitted: Promise<void> | undefined;
};

/** What the edge needs from the rest of the server. */
export interface EdgePorts {
  readonly auth: Auth;
  readonly log: EdgeLog;
  /**
   * Settles when everything this turn decided is flushed; undefined when nothing is waiting. Every answer to a mutation
   * waits for it.
   */
  readonly durable?: () => Promise<void> | undefined;
  /** Runs a read; `uncommitted` settles when what it saw is flushed. The answer to a GET waits for it. */
  readonly observe?: Observe;
  readonly idempotency?: Idempotency;
  /** While true, everything but health answers 503 and open streams go on. */
  readonly draining?: () => boolean;
  /** Most event streams of one workspace at once; 0 is no limit. */
  readonly streamsPerWorkspace?: number;
  /** After this time, and again each time it has passed, an answer that is late shows that it will come. */
  readonly heartbeatMs?: number;
}

/** The ports, and what the edge itself keeps: requests in flight, answers that are late, streams that are open. */
export interface Edge extends Required<Omit<EdgePorts, 'idempotency'>> {
  readonly idempotency: Idempotency | undefined;
  readonly streams: OpenStreams;
  readonly inFlight: Set<unknown>;
  readonly pendingAnswers: Set<PendingAnswer>;
  readonly guesses: GuessGuard;
}
