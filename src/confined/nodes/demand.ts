/** How many machines an engine is to keep for kernels. */

export interface Load {
  /** Kernels that run on machines of the engine. */
  readonly live: number;
  /** Kernels that wait for a machine with room. */
  readonly waiting: number;
  /** The number of kernels that one machine takes; Infinity until a machine has reported it. */
  readonly capacity: number;
  /** Machines that take kernels, and machines that are still starting. */
  readonly usable: number;
  readonly starting: number;
}

export interface NodeBounds {
  readonly min: number;
  readonly max: number;
}

/**
 * Returns enough machines for all kernels and one more, so that most openings find room at once; none without a kernel if the least
 * number is 0.
 */
export function machinesWanted(load: Load, { min, max }: NodeBounds): number {
  const kernels = load.live + load.waiting;
  const enough = kernels === 0 ? min : Math.max(1, Math.ceil(kernels / load.capacity)) + 1;
  // A machine may be full before its capacity, for lack of memory.
  const forWaiting = load.waiting > 0 && load.starting === 0 ? load.usable + 1 : 0;
  return Math.min(max, Math.max(min, enough, forWaiting));
}

/** Remembers the largest number of the last minutes, so that machines are kept while few kernels run for a short time. */
export class RecentMost {
  readonly #keepMs: number;
  /** The numbers in decreasing order, each with the time at which it was noted last. */
  readonly #noted: { readonly count: number; readonly at: number }[] = [];

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  /** Notes a number of machines. Returns the largest number of the last `keepMs`. */
  note(count: number, now: number): number {
    while ((this.#noted.at(-1)?.count ?? Infinity) <= count) this.#noted.pop();
    this.#noted.push({ count, at: now });
    while ((this.#noted[0]?.at ?? now) < now - this.#keepMs) this.#noted.shift();
    return this.#noted[0]?.count ?? count;
  }
}
