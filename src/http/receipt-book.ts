/**
 * Receipts of idempotency keys: kept for a day, in the same commit as what the request did. A key whose first request
 * is still running is known in memory only: a request that a crash cut off has done nothing, or has its receipt.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import nacl from 'tweetnacl';
import { AppError } from '#src/core/errors.ts';
import { SYSTEM } from '#storage/keys.ts';
import { type ReceiptRecord, receiptExpiries, receiptRecords } from '#storage/receipts.ts';
import type { Store } from '#storage/store.ts';
import type { Idempotency, IdempotentRequest, IdempotentStart, StoredReply } from './idempotency.ts';

const KEPT_MS = 24 * 60 * 60 * 1000;
const SWEEP_EVERY_MS = 10 * 60 * 1000;
const SWEEP_LIMIT = 1_000;
const TIME_DIGITS = 15;

export class ReceiptBook implements Idempotency, Disposable {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #running = new Set<string>();
  readonly #sweep: NodeJS.Timeout;

  constructor(store: Store, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
    this.#sweep = setInterval(() => this.sweep(), SWEEP_EVERY_MS).unref();
  }

  begin(request: IdempotentRequest): IdempotentStart {
    const { workspaceId, bodyHash } = request;
    const digest = digestOf(request);
    const running = `${workspaceId}/${digest}`;
    if (this.#running.has(running)) {
      throw new AppError(
        'idempotency_in_progress',
        'The first request with this key has not been answered yet.',
        {
          headers: { 'retry-after': '1' },
        },
      );
    }
    const receipt = this.#store.get(receiptRecords, workspaceId, digest);
    if (receipt !== undefined && receipt.expiresAtMs > this.#now()) {
      if (!timingSafeEqual(receipt.bodyHash, bodyHash)) throw reused();
      return { kind: 'replay', reply: openReply(receipt, request) };
    }
    this.#running.add(running);
    return {
      kind: 'proceed',
      complete: (reply) => {
        this.#running.delete(running);
        this.#keep(request, digest, reply);
      },
      abandon: () => void this.#running.delete(running),
    };
  }

  /** Removes receipts that are over a day old, a bounded number at a time. */
  sweep(): void {
    const now = timeText(this.#now());
    const due = [...this.#store.listKeys(receiptExpiries, SYSTEM, [], SWEEP_LIMIT)];
    this.#store.write((tx) => {
      for (const [time, workspaceId, digest] of due) {
        if (time === undefined || workspaceId === undefined || digest === undefined || time > now) return;
        const receipt = tx.get(receiptRecords, workspaceId, digest);
        // The key may have been used again since: that receipt has an expiry of its own.
        if (receipt !== undefined && timeText(receipt.expiresAtMs) <= now) {
          tx.remove(receiptRecords, workspaceId, digest);
        }
        tx.remove(receiptExpiries, SYSTEM, time, workspaceId, digest);
      }
    });
  }

  [Symbol.dispose](): void {
    clearInterval(this.#sweep);
  }

  #keep(request: IdempotentRequest, digest: string, reply: StoredReply): void {
    const { workspaceId, bodyHash } = request;
    const expiresAtMs = this.#now() + KEPT_MS;
    const { status, headers, contentType } = reply;
    this.#store.write((tx) => {
      const sealed = seal(reply.bytes, request.sealedBy);
      tx.put(
        receiptRecords,
        { bodyHash, status, headers, contentType, ...sealed, expiresAtMs },
        workspaceId,
        digest,
      );
      tx.put(receiptExpiries, null, SYSTEM, timeText(expiresAtMs), workspaceId, digest);
    });
  }
}

function digestOf({ method, path, key }: IdempotentRequest): string {
  return createHash('sha256').update(`${method}\n${path}\n${key}`).digest('base64url');
}

function timeText(ms: number): string {
  return String(ms).padStart(TIME_DIGITS, '0');
}

function reused(): AppError {
  return new AppError('idempotency_key_reused', 'This key was used with another request. Use a new one.');
}

/** The credential itself is stored nowhere, so the store alone cannot open what it seals. */
function sealingKey(credential: string): Uint8Array {
  return createHash('sha256').update('troupe receipt\0').update(credential).digest();
}

function seal(bytes: Uint8Array, sealedBy: string | undefined): Pick<ReceiptRecord, 'bytes' | 'nonce'> {
  if (sealedBy === undefined) return { bytes, nonce: null };
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  return { bytes: nacl.secretbox(new Uint8Array(bytes), nonce, sealingKey(sealedBy)), nonce };
}

function openReply(receipt: ReceiptRecord, { sealedBy }: IdempotentRequest): StoredReply {
  const { status, headers, contentType, bytes, nonce } = receipt;
  if (nonce === null) return { status, headers, contentType, bytes };
  const opened =
    sealedBy === undefined
      ? null
      : nacl.secretbox.open(
          new Uint8Array(bytes),
          new Uint8Array(nonce),
          new Uint8Array(sealingKey(sealedBy)),
        );
  if (opened === null) throw reused();
  return { status, headers, contentType, bytes: opened };
}
