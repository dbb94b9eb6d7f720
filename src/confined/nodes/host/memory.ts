/** The memory of this machine, or of the container in which this process is. */
import { readFileSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { join } from 'node:path';

const CGROUP = '/sys/fs/cgroup';

/** Returns the memory of the machine, or the limit of the container. */
export function memoryOfMachine(): number {
  const limit = process.constrainedMemory();
  return limit === undefined || limit === 0 ? totalmem() : Math.min(limit, totalmem());
}

/** Returns the memory that is free on the machine and in the container. `group` is the folder of its control group (version 2). */
export function freeMemory(group = CGROUP): number {
  return Math.min(freemem(), freeInGroup(group));
}

function freeInGroup(group: string): number {
  try {
    const read = (name: string) => readFileSync(join(group, name), 'latin1');
    const limit = Number(read('memory.max')); // NaN for "max"
    if (Number.isNaN(limit)) return Infinity;
    // Files that were read once count as used, although the system gives up their memory first.
    const cached = Number(/^inactive_file (\d+)$/m.exec(read('memory.stat'))?.[1] ?? 0);
    return Math.max(0, limit - Math.max(0, Number(read('memory.current')) - cached));
  } catch {
    return Infinity; // no control group of version 2, or only the machine's own, which has no limit
  }
}
