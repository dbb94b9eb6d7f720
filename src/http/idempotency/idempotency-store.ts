/**
 * The replies to idempotent requests, stored for a day. A reply is stored in the commit of its request's changes, so after a
 * crash either both exist or neither. Memory has the keys whose first request is still running. If several workers may get the
 * same key, the store also has a claim, which is valid as long as the worker with the claim lives.
 */

import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import nacl from 'tweetnacl';
import { unawaited } from '#src/base/async/unawaited.ts';
import { AppError } from '#src/base/errors/errors.ts';
import type { Cluster } from '#src/runtime/homes/cluster.ts';
import { unlessDamaged } from '#storage/damaged.ts';
import { SYSTEM } from '#storage/keys.ts';
import {
  type IdempotencyClaim,
  type IdempotencyRecord,
  idempotencyClaims,
  idempotencyExpiries,
  idempotencyRecords,
} from '#storage/records/idempotency.ts';
import type { Store } from '#storage/store.ts';
import type { Transaction } from '#storage/transaction.ts';
import type { Idempotency, IdempotentRequest, IdempotentStart, StoredReply } from './idempotency.ts';

const RETENTION_MS = 24 * 60 * 60 * 1000;
const SWEEP_INTERVAL_MS = 60 * 1000;
/** Records that are removed in one commit. */
const SWEEP_BATCH = 200;
/** A sweep stops after this time, and the next one continues. */
const MAX_SWEEP_MS = 30 * 1000;
const TIME_DIGITS = 15;

/** The part of the cluster that distinguishes claims of living workers from claims of dead workers. */
type ClaimCluster = Pick<Cluster, 'owns' | 'incarnation' | 'livesElsewhere'>;

export class IdempotencyStore implements Idempotency, Disposable {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #cluster: ClaimCluster;
  readonly #running = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #isSweeping = false;
  #isClosed = false;

  constructor(store: Store, cluster: ClaimCluster, now = Date.now) {
    this.#store = store;
    this.#now = now;
    this.#cluster = cluster;
    // A sweep can only fail with a commit, and a failed commit ends the server.
    this.#timer = setInterval(
      () =>
        unawaited(
          this.sweep().catch(() => {}),
          'idempotency-store: the sweep',
        ),
      SWEEP_INTERVAL_MS,
    ).unref();
  }

  /** Claims the key for a request. Throws `idempotency_key_reused` or `idempotency_in_progress`. */
  begin(request: IdempotentRequest): IdempotentStart {
    const { workspaceId, bodyHash } = request;
    const digest = digestOf(request);
    const running = `${workspaceId}/${digest}`;
    if (this.#running.has(running)) throw inProgress();
    const record = this.#store.get(idempotencyRecords, workspaceId, digest);
    if (record !== undefined && record.expiresAtMs > this.#now()) {
      if (!timingSafeEqual(record.bodyHash, bodyHash)) throw reused();
      return { kind: 'replay', reply: openReply(record, request) };
    }
    const claim = request.isShared === true ? this.#claim(request, digest) : undefined;
    this.#running.add(running);
    return {
      kind: 'proceed',
      complete: (reply) => {
        this.#running.delete(running);
        this.#put(request, digest, reply, claim);
      },
      abandon: () => {
        this.#running.delete(running);
        if (claim !== undefined) this.#store.write((tx) => removeClaim(tx, claim, workspaceId, digest));
      },
    };
  }

  /**
   * Claims a key among all workers. Throws `idempotency_in_progress` when a living worker has the key. A server of one process
   * needs no claim.
   */
  #claim({ workspaceId }: IdempotentRequest, digest: string): IdempotencyClaim | undefined {
    const cluster = this.#cluster;
    const owner = cluster.incarnation;
    if (owner === undefined) return undefined;
    const other = this.#store.get(idempotencyClaims, workspaceId, digest);
    if (other !== undefined && cluster.livesElsewhere(other.owner)) throw inProgress();
    const claim = { owner, expiresAtMs: this.#now() + RETENTION_MS };
    this.#store.write((tx) => {
      if (other !== undefined) removeClaim(tx, other, workspaceId, digest);
      tx.put(idempotencyClaims, claim, workspaceId, digest);
      tx.mark(idempotencyExpiries, SYSTEM, timeText(claim.expiresAtMs), workspaceId, digest);
    });
    return claim;
  }

  /**
   * Removes all expired records, one batch in each commit. Resolves when no expired record is left, or after `MAX_SWEEP_MS`.
   */
  async sweep(): Promise<void> {
    if (this.#isSweeping) return;
    this.#isSweeping = true;
    const endMs = performance.now() + MAX_SWEEP_MS;
    try {
      let passed: readonly string[] | undefined;
      for (;;) {
        passed = this.#isClosed ? undefined : this.#sweepBatch(passed);
        if (passed === undefined || performance.now() >= endMs) return;
        await nextTurn();
        await this.#store.durable();
      }
    } finally {
      this.#isSweeping = false;
    }
  }

  /** Sweeps a batch of expired records after `passed`. Returns the last record of the batch; undefined after the last batch. */
  #sweepBatch(passed: readonly string[] | undefined): readonly string[] | undefined {
    if (this.#store.isReadOnly) return undefined;
    const now = timeText(this.#now());
    const due = [...this.#store.listKeys(idempotencyExpiries, SYSTEM, [], SWEEP_BATCH, passed)].filter(
      ([time = now]) => time <= now,
    );
    // A shared turn is needed, because another worker may store a new reply under one of these keys at the same moment.
    this.#store.decide(() => this.#store.write((tx) => this.#remove(tx, due, now)));
    return due.length === SWEEP_BATCH ? due.at(-1) : undefined;
  }

  #remove(tx: Transaction, due: readonly string[][], now: string): void {
    for (const [time = '', workspaceId = '', digest = ''] of due) {
      if (!this.#cluster.owns(workspaceId)) continue;
      for (const kind of [idempotencyClaims, idempotencyRecords]) {
        // If the key was used again since, the newer record stays, because it has its own expiry. A damaged record is useless, so
        // it is removed.
        const record = unlessDamaged(() =>
          tx.get<{ readonly expiresAtMs: number }>(kind, workspaceId, digest),
        );
        if (record === undefined || timeText(record.expiresAtMs) <= now) tx.remove(kind, workspaceId, digest);
      }
      tx.remove(idempotencyExpiries, SYSTEM, time, workspaceId, digest);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#isClosed = true;
  }

  #put(
    request: IdempotentRequest,
    digest: string,
    reply: StoredReply,
    claim: IdempotencyClaim | undefined,
  ): void {
    const { workspaceId, bodyHash } = request;
    const expiresAtMs = this.#now() + RETENTION_MS;
    const { status, headers, contentType } = reply;
    this.#store.write((tx) => {
      if (claim !== undefined) removeClaim(tx, claim, workspaceId, digest);
      const sealed = seal(reply.bytes, request.credential);
      tx.put(
        idempotencyRecords,
        { bodyHash, status, headers, contentType, ...sealed, expiresAtMs },
        workspaceId,
        digest,
      );
      tx.mark(idempotencyExpiries, SYSTEM, timeText(expiresAtMs), workspaceId, digest);
    });
  }
}

function digestOf({ userId, method, path, key }: IdempotentRequest): string {
  return createHash('sha256').update(`${userId}\n${method}\n${path}\n${key}`).digest('base64url');
}

/** Returns a time in milliseconds as text of fixed width, so that keys sort by time. */
function timeText(ms: number): string {
  return String(ms).padStart(TIME_DIGITS, '0');
}

/** Removes a claim and its entry in the index of expiries. */
function removeClaim(
  tx: Transaction,
  { expiresAtMs }: IdempotencyClaim,
  workspaceId: string,
  digest: string,
): void {
  tx.remove(idempotencyClaims, workspaceId, digest);
  tx.remove(idempotencyExpiries, SYSTEM, timeText(expiresAtMs), workspaceId, digest);
}

function inProgress(): AppError {
  return new AppError(
    'idempotency_in_progress',
    'The first request with this idempotency key has not been answered yet.',
    {
      headers: { 'retry-after': '1' },
    },
  );
}

function reused(): AppError {
  return new AppError('idempotency_key_reused', 'This key was used with another request. Use a new one.');
}

/** Returns the key for a credential. The credential itself is not stored, so the store alone cannot decrypt the reply. */
function sealingKey(credential: string): Uint8Array {
  return createHash('sha256').update('troupe receipt\0').update(credential).digest();
}

function seal(bytes: Uint8Array, credential: string | undefined): Pick<IdempotencyRecord, 'bytes' | 'nonce'> {
  if (credential === undefined) return { bytes, nonce: null };
  const nonce = new Uint8Array(randomBytes(nacl.secretbox.nonceLength));
  return { bytes: nacl.secretbox(new Uint8Array(bytes), nonce, sealingKey(credential)), nonce };
}

function openReply(record: IdempotencyRecord, { credential }: IdempotentRequest): StoredReply {
  const { status, headers, contentType, bytes, nonce } = record;
  if (nonce === null) return { status, headers, contentType, bytes };
  const opened =
    credential === undefined
      ? null
      : nacl.secretbox.open(
          new Uint8Array(bytes),
          new Uint8Array(nonce),
          new Uint8Array(sealingKey(credential)),
        );
  if (opened === null) throw reused();
  return { status, headers, contentType, bytes: opened };
}
