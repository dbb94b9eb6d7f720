/**
 * The phase of one exchange, and what has to be released when the client leaves in it. The exchange decides which phase
 * comes next; the abort handler of the response belongs to this file alone.
 */

import type { Home } from '#src/cluster/slots.ts';
import type { DeferredAnswer } from '../reply/deferred-answer.ts';
import type { DeferredReply } from '../reply/reply.ts';
import type { WireRequest, WireResponse } from '../wire-exchange.ts';

/** The phases of an exchange: see `exchange.ts`. Each owns what has to be released when the client leaves. */
export type Phase =
  /** Within the callback of uWebSockets.js: the client cannot have left, and every write is corked. */
  | { readonly name: 'callback' }
  /** The body is being read, or the refusal waits for the next turn. */
  | { readonly name: 'receiving' }
  /** The handler, or the commit of what it wrote, is awaited. */
  | { readonly name: 'handling' }
  /** As `handling`, with white space sent meanwhile. `failed` makes the body of a failure that comes too late for a status. */
  | { readonly name: 'deferred'; readonly answer: DeferredAnswer; readonly failed: DeferredReply['failed'] }
  /** A large body is being sent. */
  | { readonly name: 'sending' }
  /** The response belongs to an event stream, and its abort handler, too: nothing of the exchange stays in memory for it. */
  | { readonly name: 'streaming' }
  /** Another worker carries the request out. */
  | { readonly name: 'forwarded'; readonly exchange: { abandon(): void } }
  /** The client has left; a handler may still be at work. */
  | { readonly name: 'gone' }
  /** The reply was handed over. */
  | { readonly name: 'over' };

const CALLBACK: Phase = { name: 'callback' };
export const RECEIVING: Phase = { name: 'receiving' };
export const HANDLING: Phase = { name: 'handling' };
export const SENDING: Phase = { name: 'sending' };
export const STREAMING: Phase = { name: 'streaming' };
const GONE: Phase = { name: 'gone' };
const OVER: Phase = { name: 'over' };

/** What the state of an exchange needs of its request. */
interface StatedRequest {
  readonly home: Home | undefined;
  /** Called when the client has left. */
  abandon(): void;
}

export class ExchangeState {
  readonly #res: WireResponse;
  readonly #request: StatedRequest;
  readonly #inFlight: Set<ExchangeState>;
  #phase: Phase = CALLBACK;
  /** Only within the callback of the request. */
  #req: WireRequest | undefined;
  #encodings: string | undefined;

  /** `inFlight` has one entry for each exchange that outlives its callback, until its reply was handed over. */
  constructor(res: WireResponse, request: StatedRequest, inFlight: Set<ExchangeState>) {
    this.#res = res;
    this.#request = request;
    this.#inFlight = inFlight;
  }

  /** What the request is about; undefined when any worker answers it, and until that is known. */
  get home(): Home | undefined {
    return this.#request.home;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Returns the `Accept-Encoding` header, which is read when it is needed or when `req` is about to be reused. */
  get acceptedEncodings(): string {
    return this.#encodings ?? this.#req?.getHeader('accept-encoding') ?? '';
  }

  /** Begins the callback of the request, for the duration of which `req` can be read. */
  receive(req: WireRequest): void {
    this.#req = req;
  }

  /** Goes to another phase, unless the client has left. Leaving `callback` registers the abort handler. */
  enter(phase: Phase): void {
    const { name } = this.#phase;
    if (name === 'gone') return;
    this.#phase = phase;
    if (name !== 'callback') return;
    this.#encodings = this.#req?.getHeader('accept-encoding');
    this.#req = undefined;
    this.#inFlight.add(this);
    this.#res.onAborted(() => this.#abandon());
  }

  /** Goes on as if the client had left: the reply was sent already, or will not be. */
  leave(): void {
    this.#phase = GONE;
    this.#request.abandon();
  }

  /** Ends the exchange: the reply is about to be handed over whole, or its last byte was. */
  conclude(): void {
    if (this.#phase.name !== 'callback') this.release();
    this.#phase = OVER;
  }

  /** Says that nobody has to wait for this exchange any more. */
  release(): void {
    this.#inFlight.delete(this);
  }

  /** Releases what the phase owns: the client has left. A handler that is at work keeps its place in `inFlight`. */
  #abandon(): void {
    const phase = this.#phase;
    this.leave();
    if (phase.name === 'receiving' || phase.name === 'sending') this.release();
    else if (phase.name === 'deferred') phase.answer.stop();
    else if (phase.name === 'forwarded') {
      this.release();
      phase.exchange.abandon();
    }
  }
}
