/** How many processors this process may use. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** The files with the quota of a control group, as a container sees its own: one in version 2, two in version 1. */
const QUOTA_FILE = '/sys/fs/cgroup/cpu.max';
const OLD_QUOTA_FILES = ['/sys/fs/cgroup/cpu/cpu.cfs_quota_us', '/sys/fs/cgroup/cpu/cpu.cfs_period_us'];

/**
 * Returns the number of processors. Where a control group limits the processor time, the number is
 * smaller, and not always whole.
 */
export function usableProcessors(): number {
  return Math.min(availableParallelism(), quota());
}

function quota(): number {
  const text = read(QUOTA_FILE) ?? OLD_QUOTA_FILES.map(read).join(' ');
  const [time, period] = text.split(' ').map(Number);
  return time !== undefined && period !== undefined && time > 0 && period > 0 ? time / period : Infinity;
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return undefined; // there is no such control group
  }
}
