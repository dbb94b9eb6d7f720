/**
 * A POST that is sent twice with one `Idempotency-Key` is done once. Only answers that say it was done (2xx) are kept:
 * what was refused changed nothing and may be sent again.
 */
import { createHmac } from 'node:crypto';
import { AppError } from '#src/core/errors.ts';
import type { WorkspaceId } from '#src/core/ids.ts';
import type { Reply } from './reply.ts';
import type { EncodedReply } from './write-reply.ts';

/** An answer as it is kept with its key, ready to be sent again. */
export interface StoredReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Empty when there is no body. */
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

export interface IdempotentRequest {
  readonly workspaceId: WorkspaceId;
  readonly method: string;
  /** As it was requested, without the query. */
  readonly path: string;
  readonly key: string;
  /** SHA-256 of the raw body, and of the headers that the route reads. */
  readonly bodyHash: Uint8Array;
  /** The caller's credential, where the answer holds a secret: the receipt is then sealed with it. */
  readonly sealedBy: string | undefined;
}

export type IdempotentStart =
  | { readonly kind: 'replay'; readonly reply: StoredReply }
  | {
      readonly kind: 'proceed';
      /** Keeps the answer; called in the turn that produced it, so that the receipt joins that turn's commit. */
      complete(reply: StoredReply): void;
      /** Frees the key: nothing was done and the request may be sent again. */
      abandon(): void;
    };

/** Where receipts are kept. */
export interface Idempotency {
  /** Throws `idempotency_key_reused` or `idempotency_in_progress`. */
  begin(request: IdempotentRequest): IdempotentStart;
}

export interface Receipt {
  readonly kind: 'proceed';
  /** Keeps a 2xx answer, frees the key for any other. */
  settle(reply: EncodedReply): void;
}

const MAX_KEY_CHARACTERS = 255;

/** The header's value; throws `invalid_request` unless it is 1 to 255 visible ASCII characters. */
export function parseIdempotencyKey(header: string): string {
  if (header.length <= MAX_KEY_CHARACTERS && /^[\x21-\x7e]+$/.test(header)) return header;
  throw new AppError('invalid_request', 'The Idempotency-Key header is not usable.', {
    errors: [{ path: 'header/idempotency-key', message: 'must be 1 to 255 visible ASCII characters' }],
  });
}

/** Asks the store about the key: the first answer again, or leave to go on and a receipt to settle. */
export function beginReceipt(
  store: Idempotency,
  request: Omit<IdempotentRequest, 'bodyHash'> & {
    readonly body: Uint8Array;
    readonly headers: Readonly<Record<string, string>>;
  },
): Receipt | { readonly kind: 'replay'; readonly reply: Reply } {
  const { body, headers, ...rest } = request;
  const hash = createHmac('sha256', rest.key).update(body);
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

function replayed({ status, headers, contentType, bytes }: StoredReply): Reply {
  const marked = { ...headers, 'idempotency-replayed': 'true' };
  if (contentType === '') return { kind: 'empty', status, headers: marked };
  return { kind: 'bytes', status, contentType, bytes, headers: marked };
}
