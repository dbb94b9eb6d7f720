/**
 * Replaces `src/core/fault-points.ts` under `--conditions=development`. With `FAULT_POINT=<name>:<n>` the process kills
 * itself when it reaches that point for the n-th time.
 */
import type { FaultPoint } from '../../src/core/fault-points.ts';

const [name, nth = '1'] = (process.env.FAULT_POINT ?? '').split(':');
let left = Number(nth);

/** Kills the process if this is the point that was asked for. */
export function faultPoint(point: FaultPoint): void {
  if (point === name && --left === 0) process.kill(process.pid, 'SIGKILL');
}
