/**
 * What takes the place of `src/core/fault-points.ts` under `--conditions=development`: with `FAULT_POINT=<name>:<n>` the
 * process kills itself the n-th time it gets there.
 */
import type { FaultPoint } from '../../src/core/fault-points.ts';

const [name, nth = '1'] = (process.env.FAULT_POINT ?? '').split(':');
let left = Number(nth);

export function reach(point: FaultPoint): void {
  if (point === name && --left === 0) process.kill(process.pid, 'SIGKILL');
}
