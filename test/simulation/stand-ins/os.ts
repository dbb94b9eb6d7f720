/** `node:os` where the facts about a machine decide on which of them kernels start. */
import * as os from 'node:os';
import { world } from '../world/world.ts';

export * from 'node:os';

const PROCESSORS = 4;

export function availableParallelism(): number {
  return PROCESSORS;
}

export function loadavg(): number[] {
  return [world().ofNodes.next() * PROCESSORS, 1, 1];
}

export default { ...os, availableParallelism, loadavg };
