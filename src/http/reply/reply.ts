/** The replies that handlers return: plain data that the exchange writes at once or later, or an event stream that the exchange opens. */
import type { AppError } from '#src/base/errors/errors.ts';
import type { EventSink, Subscription } from '#src/runtime/events/event-sink.ts';

type Headers = Readonly<Record<string, string>>;

/** `Value` is the type of JSON bodies. Bodies that are already bytes are not checked against this type. */
export type Reply<Value = unknown> =
  | PlainReply<Value>
  | WaitingReply<Value>
  | DeferredReply<Value>
  | FileReply
  | StreamReply
  | WebReply;

/** A reply that is complete. */
export type PlainReply<Value = unknown> = JsonReply<Value> | BytesReply | EmptyReply;

export interface JsonReply<Value = unknown> {
  readonly kind: 'json';
  readonly status: number;
  readonly value: Value;
  readonly headers?: Headers;
}

/** A body that is ready to send, such as a record that is stored as the API serves it. */
export interface BytesReply {
  readonly kind: 'bytes';
  readonly status: number;
  readonly contentType: string;
  readonly bytes: Uint8Array | string;
  readonly headers?: Headers;
  /** Set for a document whose bytes all readers share. These bytes count towards no reader's limit. */
  readonly shared?: SharedForms;
}

/** The forms of a document that are kept, because many clients read it. */
export interface SharedForms {
  gzip?: Promise<Uint8Array | undefined> | undefined;
}

export interface EmptyReply {
  readonly kind: 'empty';
  readonly status: number;
  readonly headers?: Headers;
}

/**
 * JSON whose value may take minutes. Once `value` has taken longer than the heartbeat interval, status 200 has been sent. If
 * `value` rejects after that, the body is the result of `failed`. So all refusals must come before this reply is returned.
 */
export interface DeferredReply<Value = unknown> {
  readonly kind: 'deferred';
  readonly value: Promise<Value>;
  readonly failed: (error: AppError) => Value;
}

/**
 * A reply to a request whose work is done, but which waits to report more, such as how a run ended. Nothing is sent during the
 * wait. The promise must settle soon after the signal of the request aborts. It resolves with a function that reads the reply.
 * The function is called when there is memory for a large reply.
 */
export interface WaitingReply<Value = unknown> {
  readonly kind: 'waiting';
  /** The reply for the work that is done. This reply is stored with the idempotency key, in the commit of the work. */
  readonly accepted: PlainReply<Value>;
  readonly read: Promise<() => PlainReply<Value>>;
}

/** A body that is read piece by piece while it is sent. `close` is called exactly once, however the reply ends. */
export interface FileReply {
  readonly kind: 'file';
  readonly status: number;
  readonly contentType: string;
  /** The number of bytes to send. */
  readonly sizeBytes: number;
  /** Resolves with `length` bytes from `offset`, or fewer when the file has become shorter. */
  readonly read: (offset: number, length: number) => Promise<Uint8Array>;
  readonly close: () => Promise<void>;
  readonly headers?: Headers;
}

/** An event stream that another library has made. The body is sent as it comes. When the client leaves, the body is cancelled. */
export interface WebReply {
  readonly kind: 'web';
  readonly response: Response;
}

/** An event stream. `open` is called after the headers; its subscription is closed when the client leaves. */
export interface StreamReply {
  readonly kind: 'stream';
  readonly open: (sink: EventSink) => Subscription;
}

const NONE: Headers = Object.freeze({});

/** Returns a JSON reply. */
export function json<const Value>(status: number, value: Value, headers: Headers = NONE): JsonReply<Value> {
  return { kind: 'json', status, value, headers };
}

/** Returns a 200 with JSON. */
export function ok<const Value>(value: Value): JsonReply<Value> {
  return { kind: 'json', status: 200, value, headers: NONE };
}

/** Returns a 201 with JSON; `location` is the path of the new object. */
export function created<const Value>(value: Value, location: string): JsonReply<Value> {
  return { kind: 'json', status: 201, value, headers: { location } };
}

/** Returns a 202 with JSON; `location` is the path at which to follow the accepted work. */
export function accepted<const Value>(value: Value, location: string): JsonReply<Value> {
  return { kind: 'json', status: 202, value, headers: { location } };
}

/** Returns a 204. */
export function noContent(): EmptyReply {
  return { kind: 'empty', status: 204 };
}

/** Returns a reply whose JSON is already encoded. */
export function encodedJson(bytes: Uint8Array | string, status = 200, headers: Headers = NONE): BytesReply {
  return { kind: 'bytes', status, contentType: 'application/json', bytes, headers };
}

/** Returns a reply with a body of any media type. */
export function raw(
  contentType: string,
  bytes: Uint8Array | string,
  headers: Headers = NONE,
  status = 200,
): BytesReply {
  return { kind: 'bytes', status, contentType, bytes, headers };
}

/** Returns a reply with a document that many clients read. `shared` is kept with the bytes of the document. */
export function sharedDocument(
  contentType: string,
  bytes: Uint8Array,
  shared: SharedForms,
  headers: Headers = NONE,
): BytesReply {
  return { ...raw(contentType, bytes, headers), shared };
}

/** Returns a 200 with JSON that is sent when `value` resolves. */
export function defer<const Value>(
  value: Promise<Value>,
  failed: (error: AppError) => Value,
): DeferredReply<Value> {
  return { kind: 'deferred', value, failed };
}

/** Returns a reply that waits for the result of `read`. `accepted` is the reply for the work that is done. */
export function waiting<const Value>(
  accepted: PlainReply<Value>,
  read: Promise<() => PlainReply<Value>>,
): WaitingReply<Value> {
  return { kind: 'waiting', accepted, read };
}

/** Returns an event stream. */
export function stream(open: (sink: EventSink) => Subscription): StreamReply {
  return { kind: 'stream', open };
}
