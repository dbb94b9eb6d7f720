/** The ways in which workers of a server end in the rounds of `worker-deaths.ts`. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FaultPoint } from '#src/base/fault-points.ts';
import { eventually, gone, processFact, type WorkerFact, workersOf } from '#test/support/processes.ts';
import type { SeededRandom } from '#test/support/random.ts';
import type { Victim } from './victim.ts';

/**
 * The victim: the server, or the worker that has this role for a player. `stop` is SIGSTOP, after
 * which the watchdog must end the worker.
 */
type Target = 'any' | 'home' | 'ingress' | 'two' | 'stop' | 'primary' | 'drain';

export type Ending = {
  readonly afterMs: number;
  /** During the checks. */
  readonly early: boolean;
} & ({ readonly kind: Target } | { readonly kind: 'fault-point'; readonly point: FaultPoint });

/** The end of workers: how they ended, and the time by `performance.now()`. */
export interface WorkersEnd {
  readonly how: string;
  readonly at: number;
}

const POINTS: readonly FaultPoint[] = [
  'turn.decided',
  'turn.durable',
  'turn.shared',
  'run.begun',
  'run.ended',
  'kernel.ready',
  'session.released',
];
/** How many of a hundred rounds end in each way. */
const SHARES: Readonly<Record<Ending['kind'], number>> = {
  'fault-point': 30,
  home: 14,
  stop: 14,
  any: 12,
  ingress: 12,
  primary: 8,
  two: 6,
  drain: 4,
};
const KINDS = (Object.keys(SHARES) as Ending['kind'][]).flatMap((kind) =>
  Array.from({ length: SHARES[kind] }, () => kind),
);
/** How long a fault point may not be reached before the round ends without a death. */
const MAX_POINT_MS = 4_000;
/** How long a worker may take to end, the watchdog's time included. */
const MAX_END_MS = 2_000;

export function chooseEnding(random: SeededRandom): Ending {
  const how = { afterMs: 100 + random.below(900), early: random.is(0.15) };
  const kind = random.pick(KINDS);
  return kind === 'fault-point' ? { ...how, kind, point: random.pick(POINTS) } : { ...how, kind };
}

/** Ends workers of a server. The server must have been started with its `folder` as `FAULT_FOLDER`. */
export class WorkerEndings implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'troupe-fault-points-'));

  /** Calls `stop` at once when workers have ended. Resolves with undefined when none has reached its fault point. */
  async end(
    victim: Victim,
    ending: Ending,
    { random, playedIn, stop }: { random: SeededRandom; playedIn: string; stop: () => void },
  ): Promise<WorkersEnd | undefined> {
    if (ending.kind === 'fault-point') return this.#endAtPoint(victim, ending.point, stop);
    const chosen = choose(victim, ending.kind, random, playedIn);
    const at = performance.now();
    for (const { pid } of chosen) process.kill(pid, ending.kind === 'stop' ? 'SIGSTOP' : 'SIGKILL');
    stop();
    await gone(chosen, MAX_END_MS);
    return { how: ending.kind, at };
  }

  async #endAtPoint(victim: Victim, point: FaultPoint, stop: () => void): Promise<WorkersEnd | undefined> {
    const file = join(this.folder, point);
    const workers = workersOf(victim.pid);
    const isOneGone = () => workers.some(({ pid, startedAt }) => processFact(pid)?.startedAt !== startedAt);
    writeFileSync(file, '');
    await eventually('a worker has ended', isOneGone, MAX_POINT_MS).catch(() => undefined);
    const at = performance.now();
    stop();
    rmSync(file, { force: true });
    return isOneGone() ? { how: point, at } : undefined;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function choose(
  victim: Victim,
  target: Target,
  random: SeededRandom,
  notebookId: string,
): readonly WorkerFact[] {
  const workers = workersOf(victim.pid);
  if (target === 'any' || target === 'stop') return [random.pick(workers)];
  // A session's kernel is started by the worker in which it is at home.
  const home = victim.log.findLast(
    ({ sessionId, msg }) => sessionId === notebookId && msg === 'a kernel has started',
  )?.worker;
  const others = workers.filter(({ number }) => number !== home);
  if (target === 'ingress') return [random.pick(others)];
  const chosen = workers.find(({ number }) => number === home) ?? random.pick(others);
  const left = workers.filter((one) => one !== chosen);
  // One worker must survive.
  return target === 'two' && left.length > 1 ? [chosen, random.pick(left)] : [chosen];
}
