/** Shows that the cost of a computation grows no faster than its input. */
import assert from 'node:assert/strict';

/** The work of the whole input is compared with as much work in so many parts. */
const PARTS = 16;
/**
 * Work that grows with the square of the input costs 16 times as much at once as in 16 parts, and linear work the same. Garbage
 * collection and caches make it up to two or three times as much.
 */
const MAX_RATIO = 8;
const TRIES = 5;
/** Below this the measurement is mostly noise, so that less counts as this. */
const LEAST_MS = 2;

/**
 * Compares the processor time of `work(size)` with that of 16 times `work(size / 16)`, so that neither the speed of the machine
 * nor other programs matter. Fails when the whole takes at least eight times as long in each of five comparisons.
 */
export function assertLinear(what: string, size: number, work: (size: number) => unknown): void {
  const part = Math.ceil(size / PARTS);
  work(part); // the compiler has seen the code
  const ratios: string[] = [];
  while (ratios.length < TRIES) {
    const inPartsMs = processorMs(() => {
      for (let i = 0; i < PARTS; i++) work(part);
    });
    const ratio = processorMs(() => work(size)) / Math.max(inPartsMs, LEAST_MS);
    if (ratio < MAX_RATIO) return;
    ratios.push(ratio.toFixed(1));
  }
  assert.fail(
    `${what}: a ${PARTS} times larger input took ${ratios.join(', ')} times as long for each part of it`,
  );
}

/** Returns the processor time that this process uses during `work`. Other programs do not count, unlike in elapsed time. */
function processorMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
