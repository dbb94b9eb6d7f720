import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Returns the bytes of JavaScript objects in this process that are still in use. */
export function heapAfterCollection(): number {
  collect();
  return process.memoryUsage().heapUsed;
}
