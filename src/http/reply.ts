import type { AppError } from '#src/core/errors.ts';
import type { EventSink, Subscription } from '#src/events/event-sink.ts';

type Headers = Readonly<Record<string, string>>;

/** What a handler answers with: plain data that the exchange writes in one piece, now or late, or an event stream to open. */
export type Reply = PlainReply | LateReply | StreamReply;

/** An answer that is complete. */
export type PlainReply = JsonReply | BytesReply | EmptyReply;

export interface JsonReply {
  readonly kind: 'json';
  readonly status: number;
  readonly value: unknown;
  readonly headers?: Headers;
}

/** A body that is ready to send, such as a record that is stored as it is served. */
export interface BytesReply {
  readonly kind: 'bytes';
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array | string;
  readonly headers?: Headers;
}

export interface EmptyReply {
  readonly kind: 'empty';
  readonly status: number;
  readonly headers?: Headers;
}

/**
 * JSON that may take minutes to come, of a request that is accepted: whatever refuses it was thrown before. Once it takes
 * long the head is sent, and after that a failure is told by the body that `failed` gives.
 */
export interface LateReply {
  readonly kind: 'late';
  readonly value: Promise<unknown>;
  readonly failed: (error: AppError) => unknown;
}

/** `open` is called once the headers are out; the subscription it returns is closed when the client leaves. */
export interface StreamReply {
  readonly kind: 'stream';
  readonly status: 200;
  readonly open: (sink: EventSink) => Subscription;
  readonly headers?: Headers;
}

export function json(status: number, value: unknown, headers: Headers = NONE): JsonReply {
  return { kind: 'json', status, value, headers };
}

export function ok(value: unknown, headers: Headers = NONE): JsonReply {
  return { kind: 'json', status: 200, value, headers };
}

export function late(value: Promise<unknown>, failed: (error: AppError) => unknown): LateReply {
  return { kind: 'late', value, failed };
}

export function created(value: unknown, location: string): JsonReply {
  return { kind: 'json', status: 201, value, headers: { location } };
}

export function accepted(value: unknown, location: string): JsonReply {
  return { kind: 'json', status: 202, value, headers: { location } };
}

export function noContent(): EmptyReply {
  return { kind: 'empty', status: 204 };
}

/** JSON that is already encoded; the bytes are sent as they are. */
export function encodedJson(bytes: Uint8Array | string, status = 200, headers: Headers = NONE): BytesReply {
  return { kind: 'bytes', status, contentType: 'application/json', bytes, headers };
}

export function raw(
  contentType: string,
  bytes: Uint8Array | string,
  headers: Headers = NONE,
  status = 200,
): BytesReply {
  return { kind: 'bytes', status, contentType, bytes, headers };
}

export function stream(open: (sink: EventSink) => Subscription): StreamReply {
  return { kind: 'stream', status: 200, open };
}

const NONE: Headers = Object.freeze({});
