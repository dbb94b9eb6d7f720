import type { DeferredAnswer } from '../reply/deferred-answer.ts';
import type { EventStream } from '../reply/event-stream.ts';
import type { DeferredReply } from '../reply/reply.ts';

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
  | { readonly name: 'streaming'; readonly stream: EventStream }
  /** The client has left; a handler may still be at work. */
  | { readonly name: 'gone' }
  /** The reply was handed over. */
  | { readonly name: 'over' };

export const CALLBACK: Phase = { name: 'callback' };
export const RECEIVING: Phase = { name: 'receiving' };
export const HANDLING: Phase = { name: 'handling' };
export const SENDING: Phase = { name: 'sending' };
export const GONE: Phase = { name: 'gone' };
export const OVER: Phase = { name: 'over' };
