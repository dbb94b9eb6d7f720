/** The memory of a simulated machine with kernels: what is free changes with each look. */
import { world } from '../world/world.ts';

const MACHINE_BYTES = 8 * 2 ** 30;

export function memoryOfMachine(): number {
  return MACHINE_BYTES;
}

export function freeMemory(): number {
  return Math.floor(MACHINE_BYTES * (0.4 + 0.5 * world().ofNodes.next()));
}
