/** The parts of a forwarded request, on both of its ends. */
import type { Relay } from '#src/runtime/events/event-sink.ts';
import type { MirroredStream } from '#src/runtime/events/mirrored-stream.ts';

/** A forwarded request. The worker that carries it out checks the caller again. */
export interface ForwardedHead {
  /** The operation that the request asks for. */
  readonly operationId: string;
  /** The slot of the request's subject. The worker that owns the slot carries the request out. */
  readonly slot: number;
  /** In lower case, like uWebSockets.js; `head` for HEAD. */
  readonly method: string;
  readonly url: string;
  /** The query, without the question mark. */
  readonly query: string;
  /** The parameters of the path, as they were sent. */
  readonly params: readonly string[];
  /** Names and values, in turn. */
  readonly headers: readonly string[];
  /** The address at the other end of the client's connection. */
  readonly address: string;
  /** Whether the body follows the head piece by piece. */
  readonly isStreamed: boolean;
}

/** The status and headers of an answer, as uWebSockets.js is to write them. */
export interface AnswerHead {
  /** Undefined means 200. */
  readonly status?: string;
  /** Names and values, in turn. */
  readonly headers: readonly string[];
  /** The length of the whole body, if it is known before the body follows. */
  readonly length?: number;
  /** Whether the request has no body. */
  readonly isEmpty?: boolean;
  /** Whether the connection of the client ends with the answer. */
  readonly close?: boolean;
}

/** The events of a forwarded request's answer. After `end`, `cut`, `lost` and `here` no more follow. */
export interface AnswerEvents {
  whole(head: AnswerHead, body: Buffer): void;
  head(head: AnswerHead): void;
  data(bytes: Buffer): void;
  /** The answer is an event stream, and continues with the chunks of a mirrored stream. */
  follow(mirror: MirroredStream, nextIndex: number): void;
  end(bytes: Buffer): void;
  /** The answer that has begun cannot be finished. */
  cut(): void;
  /** Allows this many more bytes of the body. */
  credit(bytes: number): void;
  /**
   * The worker has ended, or for too long no worker had the slot. Nobody knows whether the request was carried out.
   */
  lost(): void;
  /** The slot has come to this worker in the meantime, so this worker must carry out the request. */
  here(): void;
}

/** A request on its way. */
export interface ForwardedRequest {
  /** Sends a piece of a streamed body. The last one may be empty. */
  body(bytes: Uint8Array, isLast: boolean): void;
  /** Allows this many more bytes of the answer. */
  credit(bytes: number): void;
  /** The client has left, so the rest of the answer is not needed. */
  abort(): void;
}

/** An answer on its way back, where the request is carried out. */
export interface AnswerChannel {
  whole(head: AnswerHead, body: Uint8Array): void;
  head(head: AnswerHead): void;
  data(bytes: Uint8Array): void;
  end(bytes: Uint8Array): void;
  cut(): void;
  credit(bytes: number): void;
  /** The continuation of an event stream, for a subscriber that has received all earlier events. */
  readonly relay: Relay;
}

/** The events that follow the head of a request that another worker has forwarded. */
export interface IncomingEvents {
  /** A piece of a streamed body. The last one may be empty. */
  body(bytes: Buffer, isLast: boolean): void;
  credit(bytes: number): void;
  aborted(): void;
}

/** Carries out a request that another worker has forwarded. `body` is the whole body, or empty if the body is streamed. */
export type ForwardedHandler = (head: ForwardedHead, body: Buffer, answer: AnswerChannel) => IncomingEvents;
