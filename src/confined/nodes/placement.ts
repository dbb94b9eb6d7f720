/** The choice of the node on which a kernel starts. */

/** The facts about a node that decide the placement of a kernel. */
export interface Candidate {
  /** The kernels of the node, including kernels that are about to start. */
  readonly kernels: number;
  readonly capacity: number;
  readonly freeMemoryBytes: number;
  /** Memory that kernels which have just started will still take. */
  readonly claimedBytes: number;
  /** The load average of one minute for each of its cores. */
  readonly loadPerCore: number;
  /** How many of its kernels belong to the workspace of the new kernel. */
  readonly ofWorkspace: number;
}

/** A node with less free memory gets no further kernel. */
export const LEAST_FREE_BYTES = 256 * 2 ** 20;

/** `spread`: by free memory and load. `workspace`: on the node with most kernels of the same workspace, as long as it has room. */
export type Placement = 'spread' | 'workspace';

/**
 * Returns the best candidate for a kernel; undefined when no candidate has room. Among equal candidates the
 * first is returned.
 */
export function choose<C extends Candidate>(candidates: readonly C[], placement: Placement): C | undefined {
  const together = (one: C) => (placement === 'workspace' ? one.ofWorkspace : 0);
  return candidates
    .filter((one) => one.kernels < one.capacity && freeOf(one) >= LEAST_FREE_BYTES)
    .reduce<C | undefined>((best, one) => {
      if (best === undefined || together(one) > together(best)) return one;
      return together(one) === together(best) && shareOf(one) > shareOf(best) ? one : best;
    }, undefined);
}

function freeOf({ freeMemoryBytes, claimedBytes }: Candidate): number {
  return freeMemoryBytes - claimedBytes;
}

/**
 * Returns the memory that one more kernel would have on the node in addition to its present kernels, less where the processors are
 * busy. Kernels
 * take little memory until they work, so free memory alone would fill one node before it used another.
 */
function shareOf(one: Candidate): number {
  return freeOf(one) / (one.kernels + 1) / (1 + one.loadPerCore);
}
