import { createHash } from 'node:crypto';
import type { KernelLimits } from './limits.ts';

const MIB = 2 ** 20;
/**
 * The memory limit of all processes together that work for a workspace but belong to none of its kernels,
 * unless the limit of kernels is lower.
 */
const MEMORY_BYTES = 3 * 1024 * MIB;

/**
 * Returns the members of an order by which a process counts towards its workspace. All processes
 * with the same folder, including those of other workers, share one limit of memory, and give way
 * to the server as kernels do. `limits` are the limits of kernels, and `filesDirectory` is the
 * folder of the workspace's files. The share reveals nothing about the workspace to the kernel
 * host.
 */
export function workspaceCharge(filesDirectory: string, { memoryBytes, nice }: KernelLimits) {
  return {
    memory: Math.min(MEMORY_BYTES, memoryBytes ?? MEMORY_BYTES),
    share: createHash('sha256').update(filesDirectory).digest('hex').slice(0, 32),
    nice,
  };
}
