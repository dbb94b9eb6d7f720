/**
 * Limits the part of a core that processes may use, so that the gain of more processes is visible
 * on a machine with few cores.
 */
import { accessSync, constants, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The `cpu` controller of control groups, version 1. */
const ROOT = '/sys/fs/cgroup/cpu';
/**
 * A short period, so that a process that has used up its part waits for milliseconds and not for tenths of a second.
 */
const PERIOD_US = 20_000;

/** Returns why processes cannot be limited here; undefined when they can. */
export function whyNoQuotas(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can give processes a quota of a core.';
  try {
    accessSync(join(ROOT, 'cpu.cfs_quota_us'), constants.R_OK);
    accessSync(ROOT, constants.W_OK);
    return undefined;
  } catch {
    return `this machine has no controller \`cpu\` of control groups (version 1) at ${ROOT}.`;
  }
}

/** Groups with a quota, one for each process. */
export class CpuQuotas {
  readonly #share: number;
  readonly #groups: string[] = [];

  /** Each process may use `share` of a core. */
  constructor(share: number) {
    this.#share = share;
  }

  /** Puts a process, with all its threads and later children, into a group of its own. */
  limit(pid: number): void {
    const group = join(ROOT, `troupe-bench-${pid}`);
    mkdirSync(group);
    this.#groups.push(group);
    writeFileSync(join(group, 'cpu.cfs_period_us'), String(PERIOD_US));
    writeFileSync(join(group, 'cpu.cfs_quota_us'), String(PERIOD_US * this.#share));
    writeFileSync(join(group, 'cgroup.procs'), String(pid));
  }

  /** Removes the groups of processes that have ended. */
  remove(): void {
    for (const group of this.#groups) rmdirSync(group);
  }
}
