import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Returns the bytes of JavaScript objects in this process that are still in use. */
export function heapAfterCollection(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

/** Collects garbage until the time is over, and keeps the process alive, which the timer of an `AbortSignal.timeout` does not. */
export async function collectFor(ms: number): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; ) {
    collect();
    await delay(20); // finalizers run in turns of their own, which nothing announces
  }
}
