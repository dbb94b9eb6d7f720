import { defineMark, defineRecord } from '../codec.ts';

/** The first reply to a request with an idempotency key, stored so that a retry gets it again. */
export interface IdempotencyRecord {
  /** HMAC-SHA-256 of the request's body, keyed with the idempotency key. */
  readonly bodyHash: Uint8Array;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  /**
   * Encrypted when there is a `nonce`: the reply contained a secret that only the caller may see
   * again.
   */
  readonly bytes: Uint8Array;
  readonly nonce: Uint8Array | null;
  readonly expiresAtMs: number;
}

/** Key: workspace id, digest of user id, method, path and idempotency key. */
export const idempotencyRecords = defineRecord<IdempotencyRecord>('receipt', 1);

/**
 * The claim of a worker that carries out a request. Other workers may get requests with the same key at the same
 * moment, and must not carry those out.
 */
export interface IdempotencyClaim {
  /**
   * The worker, as `Cluster.incarnation` names it. The claim of a worker that has ended is void.
   */
  readonly owner: string;
  readonly expiresAtMs: number;
}

/** Key: that of the `IdempotencyRecord` which takes the place of the claim when the request has been carried out. */
export const idempotencyClaims = defineRecord<IdempotencyClaim>('receipt-claim', 1);

/** The expiry of each record and each claim. Key: SYSTEM, time of expiry (fixed width), workspace id, digest. */
export const idempotencyExpiries = defineMark('receipt-expiry');
