import { setImmediate as nextTurn } from 'node:timers/promises';

const BOUND_MS = 60_000;

/**
 * Lets other work run, turn after turn, until `fact` returns true. Needs no timers, so the test may set the clock. Rejects after a
 * minute, long before the runner would end the file and report only its name.
 */
export async function afterTurns(what: string, fact: () => boolean): Promise<void> {
  const deadline = performance.now() + BOUND_MS;
  while (!fact()) {
    if (performance.now() > deadline) throw new Error(`not within ${BOUND_MS} ms: ${what}`);
    await nextTurn();
  }
}
