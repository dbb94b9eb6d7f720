/** The choice of the node on which a kernel starts. */

/** A node as the choice sees it. */
export interface Candidate {
  /** Its kernels, also those that are about to start. */
  readonly kernels: number;
  readonly capacity: number;
  readonly freeMemoryBytes: number;
  /** Memory that kernels which have just started will still take. */
  readonly claimedBytes: number;
  /** How many of its kernels belong to the workspace of the new kernel. */
  readonly ofWorkspace: number;
}

/** A node with less free memory gets no further kernel. */
export const LEAST_FREE_BYTES = 256 * 2 ** 20;

/**
 * Returns the candidate for a kernel: the one with most kernels of the same workspace, because SQLite files on a shared file
 * system must be used by one machine; among equals the one with most free memory. Undefined when none has room.
 */
export function choose<C extends Candidate>(candidates: readonly C[]): C | undefined {
  const free = (one: C) => one.freeMemoryBytes - one.claimedBytes;
  return candidates
    .filter((one) => one.kernels < one.capacity && free(one) >= LEAST_FREE_BYTES)
    .reduce<C | undefined>((best, one) => {
      if (best === undefined || one.ofWorkspace > best.ofWorkspace) return one;
      return one.ofWorkspace === best.ofWorkspace && free(one) > free(best) ? one : best;
    }, undefined);
}
