/**
 * Replaces `src/base/fault-points.ts` under `--conditions=development`. With
 * `FAULT_POINT=<name>:<n>` the process kills itself when it reaches that point for the n-th time.
 * With `FAULT_FOLDER=<path>` a process kills itself when it reaches a point that has a file in the
 * folder. It removes the file before, so that one worker dies for each file, however many workers
 * there are and are started later. With `FAULT_FLUSH_MS=<ms>` each commit takes up to that much
 * longer, before and after its flush. When a file is named for a pause point, a commit waits there
 * until the file is removed.
 */
import { existsSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import type { FaultPoint, PausePoint } from '../../src/base/fault-points.ts';

const [name, nth = '1'] = (process.env.FAULT_POINT ?? '').split(':');
const folder = process.env.FAULT_FOLDER;
let left = Number(nth);
const flushMs = Number(process.env.FAULT_FLUSH_MS ?? '0');

/** Kills the process if this is the requested point. */
export function faultPoint(point: FaultPoint): void {
  const isCounted = point === name && --left === 0;
  if (isCounted || (folder !== undefined && isTaken(join(folder, point))))
    process.kill(process.pid, 'SIGKILL');
}

function isTaken(file: string): boolean {
  try {
    unlinkSync(file);
    return true;
  } catch {
    return false; // the file does not exist, or another worker was faster
  }
}

/** Delays a commit if the test has asked for that. */
export function faultPause(point: PausePoint): Promise<void> | undefined {
  if (folder !== undefined && existsSync(join(folder, point))) return whileThere(join(folder, point));
  return flushMs > 0 ? later(Math.random() ** 3 * flushMs) : undefined;
}

async function whileThere(file: string): Promise<void> {
  while (existsSync(file)) await later(5);
}
