import { defineRecord } from './codec.ts';

/** The first answer to an idempotency key, kept so that a retry gets it again. */
export interface ReceiptRecord {
  /** Of the request's body, keyed with the idempotency key. */
  readonly bodyHash: Uint8Array;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string;
  /** Sealed when `nonce` is there: the answer held a secret, and only its first caller can open it. */
  readonly bytes: Uint8Array;
  readonly nonce: Uint8Array | null;
  readonly expiresAtMs: number;
}

/** Key: workspace id, digest of method, path and idempotency key. */
export const receiptRecords = defineRecord<ReceiptRecord>('receipt', 1);

/** Which receipts end when. Key: SYSTEM, time of the end (fixed width), workspace id, digest. */
export const receiptExpiries = defineRecord<null>('receipt-expiry', 1);
