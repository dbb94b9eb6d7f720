/** The phases of an `HttpExchange`, and what the parts of an exchange see of the exchange. The chart is in `exchange.ts`. */
import type { ForwardedExchange } from '../peer/forwarded-exchange.ts';
import type { DeferredAnswer } from '../reply/deferred-answer.ts';
import type { DeferredReply } from '../reply/reply.ts';
import type { EncodedReply } from '../reply/write-reply.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';
import type { AdmittedRequest, PreparedRoute } from './admission.ts';
import type { HttpContext } from './http-context.ts';

/** The phases of an exchange. */
export type Phase =
  /** Within the callback of uWebSockets.js: the client cannot have left, and every write is corked. `req` is valid only here. */
  | { readonly name: 'callback'; readonly req: WireRequest }
  /** The body is being read, the request waits for a turn of its workspace, or the refusal waits for the next turn. */
  | { readonly name: 'receiving' }
  /** The exchange waits for the decision, or for the commit of its writes. */
  | { readonly name: 'handling' }
  /**
   * Like `handling`, but white space is sent during the wait. `failed` makes the body of a failure that occurs after the status was
   * sent.
   */
  | { readonly name: 'deferred'; readonly answer: DeferredAnswer; readonly failed: DeferredReply['failed'] }
  /** A large body is being sent. */
  | { readonly name: 'sending' }
  /** The event stream owns the response and its abort handler, and refers to nothing of the exchange. */
  | { readonly name: 'streaming' }
  /** Another worker carries the request out. */
  | { readonly name: 'forwarded'; readonly exchange: ForwardedExchange }
  /** The client has left; a handler may still be at work. */
  | { readonly name: 'gone' }
  /** The whole reply was given to uWebSockets.js. */
  | { readonly name: 'over' };

export const RECEIVING: Phase = { name: 'receiving' };
export const HANDLING: Phase = { name: 'handling' };
export const SENDING: Phase = { name: 'sending' };
export const STREAMING: Phase = { name: 'streaming' };
export const GONE: Phase = { name: 'gone' };
export const OVER: Phase = { name: 'over' };

/** An exchange, as its intake and its delivery see it. */
export interface OpenExchange {
  readonly prepared: PreparedRoute;
  readonly context: HttpContext;
  readonly res: WireResponse;
  readonly request: AdmittedRequest;
  readonly phase: Phase;
  /** Goes to another phase, unless the client has left. Leaving `callback` registers the abort handler. */
  enter(phase: Phase): void;
  /** Ends the exchange: uWebSockets.js is about to get the whole reply, or has got its last byte. */
  conclude(): void;
  /** Takes the exchange out of the requests for which a closing server waits, and gives its memory back. */
  release(): void;
  /** Returns the reply that describes an error, as it can be sent at this moment. */
  problem(error: unknown): EncodedReply;
}
