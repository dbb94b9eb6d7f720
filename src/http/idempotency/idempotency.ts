/**
 * Idempotency: a POST that is sent twice with one `Idempotency-Key` takes effect once, and the retry gets the first reply. Only
 * 2xx replies are stored. A refused request has changed nothing and may be sent again.
 */
import { createHmac, type Hmac } from 'node:crypto';
import { MAX_SIZE_AT_ONCE } from '#src/base/async/slices.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { UserId, WorkspaceId } from '#src/base/ids.ts';
import type { BytesReply, EmptyReply } from '../reply/reply.ts';
import type { EncodedReply } from '../reply/write-reply.ts';

/** A stored reply with its key, ready to be sent again. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The media type of the body; empty when there is no body. */
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

export interface IdempotentRequest {
  readonly workspaceId: WorkspaceId;
  /** The user to whom the key belongs. The same key of another user is for another request. */
  readonly userId: UserId;
  readonly method: string;
  /** The path as requested, without the query. */
  readonly path: string;
  readonly key: string;
  /** HMAC-SHA-256, keyed with the idempotency key, of the raw body and of the headers that the route reads. */
  readonly bodyHash: Uint8Array;
  /** The caller's credential if the reply holds a secret. The stored reply is then encrypted with the credential. */
  readonly credential: string | undefined;
  /**
   * Whether another worker may get a request with this key at the same moment. If so, `begin` must be called in a shared turn,
   * and notes in the store that the key is in use.
   */
  readonly isShared?: boolean;
}

export type IdempotentStart =
  | { readonly kind: 'replay'; readonly reply: StoredReply }
  | {
      readonly kind: 'proceed';
      /** Stores the reply. Call it in the turn that produced the reply, so that both are in one commit. */
      complete(reply: StoredReply): void;
      /** Frees the key: the request took no effect and may be sent again. */
      abandon(): void;
    };

/** The store of the replies to idempotent requests. */
export interface Idempotency {
  /** Claims the key for a request. Throws `idempotency_key_reused` or `idempotency_in_progress`. */
  begin(request: IdempotentRequest): IdempotentStart;
}

/** A request that is carried out under its idempotency key. */
export interface IdempotentAttempt {
  readonly kind: 'proceed';
  /** Stores a 2xx reply. After any other reply, frees the key. */
  settle(reply: EncodedReply): void;
}

/** The reply to an earlier request with the same key. */
export interface Replay {
  readonly kind: 'replay';
  readonly reply: BytesReply | EmptyReply;
}

/** The header of a reply that repeats the reply to an earlier request. */
export const REPLAYED = { 'idempotency-replayed': 'true' } as const;

const MAX_KEY_CHARACTERS = 255;

/** Returns the header's value. Throws `invalid_request` unless it is 1 to 255 visible ASCII characters. */
export function parseIdempotencyKey(header: string): string {
  if (header.length <= MAX_KEY_CHARACTERS && /^[\x21-\x7e]+$/.test(header)) return header;
  throw new AppError('invalid_request', 'The Idempotency-Key header is not usable.', {
    errors: [{ path: 'header/idempotency-key', message: 'must be 1 to 255 visible ASCII characters' }],
  });
}

/** Returns the hash of a body, to which the headers are still to be added, in steps of up to a millisecond. */
export function* hashBody(key: string, body: Uint8Array): Generator<undefined, Hmac> {
  const hash = createHmac('sha256', key);
  for (let at = 0; at < body.byteLength; at += MAX_SIZE_AT_ONCE) {
    hash.update(body.subarray(at, at + MAX_SIZE_AT_ONCE));
    yield;
  }
  return hash;
}

/** Returns the stored reply of an earlier request, or the attempt to settle with the reply. Throws like `begin`. */
export function beginIdempotent(
  store: Idempotency,
  request: Omit<IdempotentRequest, 'bodyHash'> & {
    /** The result of `hashBody` for the key. */
    readonly hash: Hmac;
    readonly headers: Readonly<Record<string, string>>;
  },
): IdempotentAttempt | Replay {
  const { hash, headers, ...rest } = request;
  for (const [name, value] of Object.entries(headers)) hash.update(`\n${name}: ${value}`);
  const start = store.begin({ ...rest, bodyHash: hash.digest() });
  if (start.kind === 'replay') return { kind: 'replay', reply: replayed(start.reply) };
  return {
    kind: 'proceed',
    settle(reply) {
      if (reply.status >= 200 && reply.status < 300) start.complete(stored(reply));
      else start.abandon();
    },
  };
}

function stored(reply: EncodedReply): StoredReply {
  const { status, headers = {} } = reply;
  if (reply.kind === 'empty') return { status, headers, contentType: '', bytes: new Uint8Array() };
  const bytes = typeof reply.bytes === 'string' ? Buffer.from(reply.bytes) : reply.bytes;
  return { status, headers, contentType: reply.contentType, bytes };
}

function replayed({ status, headers, contentType, bytes }: StoredReply): BytesReply | EmptyReply {
  const marked = { ...headers, ...REPLAYED };
  if (contentType === '') return { kind: 'empty', status, headers: marked };
  return { kind: 'bytes', status, contentType, bytes, headers: marked };
}
