import type { Caller } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { Home } from '#src/runtime/homes/slots.ts';
import type { PendingAnswer } from '../reply/deferred-answer.ts';
import { OpenStreams } from '../reply/event-stream.ts';
import type { ErrorLog } from '../reply/problem.ts';
import { CallerChanges, type RenewCaller } from './caller-changes.ts';

/** A request that has no answer yet. */
export interface InFlightRequest {
  /** The notebook, conversation or workspace of the request; undefined until it is known, and when any worker may answer it. */
  readonly home: Home | undefined;
  /** Its phase: see `HttpExchange`. */
  readonly phase: { readonly name: string };
}

/**
 * The requests and event streams that are still open. This object exists before the server listens: other workers forward
 * requests here before that, and the callers of those requests can lose their rights.
 */
export class OpenRequests {
  readonly streams = new OpenStreams();
  /** Streams of other workers that are mirrored here: each of them is among the `streams` of its home. */
  readonly mirrored = new OpenStreams();
  /** Requests without an answer yet, including those that were forwarded to another worker. */
  readonly inFlight = new Set<InFlightRequest>();
  readonly pendingAnswers = new Set<PendingAnswer>();
  readonly callerChanges = new CallerChanges();
  /** How many requests have come so far. */
  count = 0;
  readonly #log: ErrorLog;

  constructor(log: ErrorLog) {
    this.#log = log;
  }

  /** How many event streams are open, and how many requests have no answer yet. */
  load(): { readonly streams: number; readonly requests: number } {
    // Each worker counts the requests that it carries out.
    const requests = [...this.inFlight].filter(({ phase }) => phase.name !== 'forwarded').length;
    return { streams: this.streams.size, requests };
  }

  /** Yields the notebook, conversation or workspace of each open request and stream, some more than once. */
  *busyHomes(): Generator<Home> {
    for (const open of [this.inFlight, this.streams, this.pendingAnswers])
      for (const { home } of open) if (home !== undefined) yield home;
  }

  /** Ends the event streams for which `matches` returns true or throws, such as those of a revoked token. */
  endStreams(matches: (caller: Caller | undefined, action: string | undefined) => boolean): void {
    for (const stream of this.streams) {
      try {
        if (!matches(stream.caller, stream.action)) continue;
      } catch (error) {
        // Nobody knows whether the caller still has the right, so the stream ends. The error must not prevent the checks of other
        // streams.
        this.#log.error({ err: error }, 'a stream ends because its caller could not be checked');
      }
      stream.end();
    }
  }

  /**
   * Refuses the requests whose caller may no longer make them, or cannot be checked: `renew` throws the reason. Requests with a
   * deferred reply end now, others before their handler begins. Handlers that begin later get the caller that `renew` returns.
   */
  endPending(renew: RenewCaller): void {
    this.callerChanges.note(renew);
    for (const { caller, action, revoke } of this.pendingAnswers) {
      if (caller === undefined || action === undefined) continue;
      try {
        renew(caller, action);
      } catch (error) {
        revoke(error instanceof AppError ? error : this.#unchecked(error));
      }
    }
  }

  #unchecked(error: unknown): AppError {
    this.#log.error({ err: error }, 'a request is refused because its caller could not be checked again');
    return new AppError('internal', 'The rights of the caller could not be checked again.');
  }
}
