/**
 * The memory for bodies of requests. A body may have 16 MiB and a server any number of connections, so without a limit one member of
 * one workspace could fill the memory with bodies that never end, or whose requests wait.
 */

import { AppError } from '#src/core/errors.ts';

/** All bodies of one process together. The bodies of one workspace have half of what those of others leave, so that others have room. */
export const MAX_BODY_MEMORY_BYTES = 256 * 1024 * 1024;

export class BodyMemory {
  #usedBytes = 0;
  readonly #usedBy = new Map<string, number>();

  /** Charges so many bytes to a workspace. Returns false, and charges nothing, when they have no room. */
  take(workspaceId: string, bytes: number): boolean {
    const before = this.#usedBy.get(workspaceId) ?? 0;
    const usedByOthers = this.#usedBytes - before;
    const used = before + bytes;
    if (used > (MAX_BODY_MEMORY_BYTES - usedByOthers) / 2) return false;
    this.#usedBy.set(workspaceId, used);
    this.#usedBytes += bytes;
    return true;
  }

  /** Gives back what `take` has charged. */
  give(workspaceId: string, bytes: number): void {
    const left = (this.#usedBy.get(workspaceId) ?? 0) - bytes;
    if (left > 0) this.#usedBy.set(workspaceId, left);
    else this.#usedBy.delete(workspaceId);
    this.#usedBytes -= bytes;
  }
}

/** The memory of one body. */
export class BodyCharge {
  readonly #memory: BodyMemory;
  readonly #workspaceId: string;
  #bytes = 0;

  constructor(memory: BodyMemory, workspaceId: string) {
    this.#memory = memory;
    this.#workspaceId = workspaceId;
  }

  /** Charges further bytes. Returns false when they have no room; then nothing is charged any more. */
  take(bytes: number): boolean {
    if (this.#memory.take(this.#workspaceId, bytes)) {
      this.#bytes += bytes;
      return true;
    }
    this.release();
    return false;
  }

  release(): void {
    if (this.#bytes > 0) this.#memory.give(this.#workspaceId, this.#bytes);
    this.#bytes = 0;
  }
}

/** Returns the error for a body that has no room. */
export function noRoomForBody(): AppError {
  return new AppError(
    'unavailable',
    'Too many large request bodies of this workspace are in progress. Send this one again when some of them are answered.',
  );
}
