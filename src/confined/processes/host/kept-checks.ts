/**
 * The file in which a server keeps the results of its checks of confinement. `troupe doctor` reads it, because a command outside
 * of the service's unit or container is allowed other things than the server, and would check something else.
 */
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The name of the file in the data directory. */
const CHECKS_FILE = 'confinement.json';
const MAX_BYTES = 64 * 1024;

/** The results of one server on this machine. */
export interface ConfinementChecks {
  /** The time of the checks, as an ISO timestamp. */
  readonly checkedAt: string;
  /** The line `full|partial|none|off: …`. */
  readonly confinement: string;
  /** The reason why no kernel starts; null when a kernel has started with this confinement. */
  readonly problem: string | null;
}

/**
 * Writes the results into the data directory `root`. Never throws, because a server on a full disk runs
 * without the file.
 */
export function keepChecks(root: string, checks: Omit<ConfinementChecks, 'checkedAt'>): void {
  const path = join(root, CHECKS_FILE);
  try {
    const text = JSON.stringify({ checkedAt: new Date().toISOString(), ...checks });
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch {
    forgetChecks(root); // a reader would mistake old results for the present results
  }
}

/** Removes the results of an earlier server. Never throws. */
export function forgetChecks(root: string): void {
  for (const path of [join(root, CHECKS_FILE), join(root, `${CHECKS_FILE}.new`)]) {
    try {
      rmSync(path, { force: true });
    } catch {
      // The directory cannot be changed, and the start of the server fails with a better message.
    }
  }
}

/** Returns the results that the latest server on the data directory `root` has kept; undefined when there are none to be read. */
export function readChecks(root: string): ConfinementChecks | undefined {
  try {
    const bytes = readFileSync(join(root, CHECKS_FILE));
    if (bytes.length > MAX_BYTES) return undefined;
    const { checkedAt, confinement, problem } = JSON.parse(bytes.toString()) as Record<string, unknown>;
    if (typeof checkedAt !== 'string' || typeof confinement !== 'string') return undefined;
    return { checkedAt, confinement, problem: typeof problem === 'string' ? problem : null };
  } catch {
    return undefined;
  }
}
