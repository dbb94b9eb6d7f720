/**
 * The memory for bodies of requests, and for large answers. Bodies and answers may have 16 MiB and more, and a server any number
 * of connections. Without a limit one member of one workspace could fill the memory: with bodies that never end, or whose
 * requests wait, and with answers that are read slowly.
 */

import type { Principal, TokenHolder } from '#src/base/caller/principal.ts';
import { AppError } from '#src/base/errors/errors.ts';
import { invariant } from '#src/base/errors/invariant.ts';

/**
 * The most bytes of all bodies of one process, and of all its answers. One workspace may have half of the memory that other
 * workspaces leave free.
 */
export const MAX_BODY_MEMORY_BYTES = 256 * 1024 * 1024;

export class BodyMemory {
  readonly #alwaysTakesOne: boolean;
  #usedBytes = 0;
  readonly #usedBy = new Map<string, number>();

  /** With `alwaysTakesOne`, a workspace that keeps nothing may keep one body of any size. */
  constructor({ alwaysTakesOne = false } = {}) {
    this.#alwaysTakesOne = alwaysTakesOne;
  }

  /** Charges so many bytes to a workspace. Returns false, and charges nothing, when there is no room. */
  take(workspaceId: string, bytes: number): boolean {
    const before = this.#usedBy.get(workspaceId) ?? 0;
    const usedByOthers = this.#usedBytes - before;
    const used = before + bytes;
    const isOnly = this.#alwaysTakesOne && before === 0;
    if (!isOnly && used > (MAX_BODY_MEMORY_BYTES - usedByOthers) / 2) return false;
    this.#usedBy.set(workspaceId, used);
    this.#usedBytes += bytes;
    return true;
  }

  /** Gives back what `take` has charged. */
  give(workspaceId: string, bytes: number): void {
    const left = (this.#usedBy.get(workspaceId) ?? 0) - bytes;
    invariant(left >= 0, 'A workspace gives back only bytes that are charged to it.', workspaceId);
    if (left > 0) this.#usedBy.set(workspaceId, left);
    else this.#usedBy.delete(workspaceId);
    this.#usedBytes -= bytes;
  }
}

/** The caller of a request, whose bodies are charged. */
interface BodyOwner {
  readonly principal: Principal | undefined;
  readonly holder: TokenHolder | undefined;
}

/** The memory of one body. */
export class BodyCharge {
  readonly #memory: BodyMemory;
  readonly #workspaceId: string;
  #bytes = 0;

  private constructor(memory: BodyMemory, workspaceId: string) {
    this.#memory = memory;
    this.#workspaceId = workspaceId;
  }

  /** Returns a charge to the workspace of the caller, or to the holder of a token that names no workspace. */
  static of({ principal, holder }: BodyOwner, memory: BodyMemory): BodyCharge {
    return new BodyCharge(memory, principal?.workspaceId ?? holder?.userId ?? '');
  }

  /** Charges further bytes. Returns false when there is no room; after that nothing is charged. */
  take(bytes: number): boolean {
    if (this.#memory.take(this.#workspaceId, bytes)) {
      this.#bytes += bytes;
      return true;
    }
    this.release();
    return false;
  }

  /** Gives a part of the bytes back. */
  give(bytes: number): void {
    const given = Math.min(bytes, this.#bytes); // nothing is charged any more when others had no room
    this.#bytes -= given;
    if (given > 0) this.#memory.give(this.#workspaceId, given);
  }

  release(): void {
    if (this.#bytes > 0) this.#memory.give(this.#workspaceId, this.#bytes);
    this.#bytes = 0;
  }
}

/**
 * A body that is passed on as it arrives is not charged when it comes at once and has at most so many bytes. So there is always
 * room for such a body.
 */
export const MAX_FREE_BYTES = 64 * 1024;

/** Returns the bytes of memory that a body keeps: a range of a document keeps the whole document. */
export function heldBytes(body: Uint8Array | string): number {
  return typeof body === 'string' ? body.length : body.buffer.byteLength;
}

/** Returns the error for a body that has no room. */
export function noRoomForBody(): AppError {
  return new AppError(
    'unavailable',
    'Too many large requests of this workspace are in progress. Send this request again when some of them are answered.',
  );
}

/**
 * Returns the error for a large answer that has no room. `isMutation`: the request has changed something, and only its answer is
 * not sent.
 */
export function noRoomForReply(isMutation: boolean): AppError {
  const crowd = 'Too many large answers of this workspace are being read.';
  return new AppError(
    'unavailable',
    isMutation
      ? `${crowd} The request was carried out. You can repeat a POST with the same Idempotency-Key; without a key, read the state first.`
      : `${crowd} Ask again when some of these answers have been read.`,
  );
}
