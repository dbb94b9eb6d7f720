import type { Auth } from '#src/core/principal.ts';
import type { Idempotency } from '../idempotency/idempotency.ts';
import type { PendingAnswer } from '../reply/deferred-answer.ts';
import type { OpenStreams } from '../reply/event-stream.ts';
import type { ErrorLog } from '../reply/problem.ts';
import type { AuthThrottle } from './auth-throttle.ts';

/** What the HTTP server needs from the rest of the server. */
export interface HttpDependencies {
  readonly auth: Auth;
  readonly log: ErrorLog;
  /**
   * Returns a promise that resolves once everything this turn of the event loop wrote is on disk, or undefined when
   * nothing is waiting. The reply to every mutation waits for it.
   */
  readonly durable?: () => Promise<void> | undefined;
  /** Runs a read. `uncommitted` resolves once everything the read saw is on disk; the reply to a GET waits for it. */
  readonly observe?: <T>(read: () => T) => {
    readonly result: T;
    readonly uncommitted: Promise<void> | undefined;
  };
  readonly idempotency?: Idempotency;
  /** While it returns true, every route but the health checks answers 503. Open event streams go on. */
  readonly draining?: () => boolean;
  /** How many event streams one workspace may have open at once; 0 means any number. */
  readonly streamsPerWorkspace?: number;
  /** The interval at which a deferred reply sends white space while its value is awaited. */
  readonly heartbeatMs?: number;
}

/** The dependencies with their defaults, and what all requests of one server share. */
export interface HttpContext extends Required<Omit<HttpDependencies, 'idempotency'>> {
  readonly idempotency: Idempotency | undefined;
  readonly streams: OpenStreams;
  /** One entry for each request that has not been answered yet. */
  readonly inFlight: Set<unknown>;
  readonly pendingAnswers: Set<PendingAnswer>;
  readonly authThrottle: AuthThrottle;
}
