/**
 * Kills a server in rounds while several players use it. In each round the server is started,
 * everything that it promised before is checked, the players play, and the server ends. A seed
 * determines all choices; only the timing of processes varies.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as later } from 'node:timers/promises';
import { anySignal } from '#src/base/async/any-signal.ts';
import type { FaultPoint } from '#src/base/fault-points.ts';
import { SeededRandom } from '#test/support/random.ts';
import { Player } from './player.ts';
import { Victim } from './victim.ts';

/** The options of a run. */
export interface FaultOptions {
  readonly seed: number;
  /** The run ends after this time or this many rounds, whichever comes first. */
  readonly seconds: number;
  readonly rounds: number;
  readonly restartLimitMs: number;
  readonly say: (line: string) => void;
}

/** The results of a run. */
export interface FaultReport {
  readonly rounds: number;
  readonly operations: number;
  /** Milliseconds of every start but the first, sorted. */
  readonly restartsMs: readonly number[];
  readonly endings: Readonly<Record<string, number>>;
}

type Ending =
  | {
      readonly kind: 'kill' | 'drain' | 'kernel-host';
      readonly afterMs: number;
      /** The time counts from the start, so that the end can happen during the checks. */
      readonly early?: boolean;
    }
  | { readonly kind: 'fault-point'; readonly point: string; readonly afterMs: number };

const PLAYERS = 4;
const POINTS: readonly FaultPoint[] = [
  'turn.decided',
  'turn.durable',
  'run.begun',
  'run.ended',
  'kernel.ready',
  'session.released',
];

function chooseEnding(random: SeededRandom): Ending {
  const dice = random.next();
  const afterMs = 100 + random.below(900);
  if (dice < 0.45) {
    // The count is higher than the number of times that the checks pass these points.
    return { kind: 'fault-point', point: `${random.pick(POINTS)}:${8 + random.below(25)}`, afterMs: 1_500 };
  }
  if (dice < 0.75) return { kind: 'kill', afterMs, early: dice < 0.52 };
  return { kind: dice < 0.88 ? 'drain' : 'kernel-host', afterMs };
}

/** Runs the rounds. Throws the first broken promise, with the command that repeats it. */
export async function driveFaults(options: FaultOptions): Promise<FaultReport> {
  const { seed, seconds, rounds: limit, say } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'troupe-faults-'));
  const random = new SeededRandom(seed);
  const players = Array.from({ length: PLAYERS }, (_, i) => new Player(`player${i}`));
  const restartsMs: number[] = [];
  const endings: Record<string, number> = {};
  const deadline = performance.now() + seconds * 1000;
  let round = 0;
  try {
    for (; round < limit && performance.now() < deadline; round++) {
      const ending = chooseEnding(random);
      const name = ending.kind === 'fault-point' ? ending.point.split(':')[0]! : ending.kind;
      endings[name] = (endings[name] ?? 0) + 1;
      const { readyMs } = await playRound(dataDir, players, ending, random.fork());
      if (round % 25 === 24) say(`${round + 1} rounds`);
      if (round === 0) continue;
      restartsMs.push(readyMs);
      if (readyMs > options.restartLimitMs) throw new Error(`a restart took ${Math.round(readyMs)} ms`);
    }
    // One more start checks the promises of the last round.
    await playRound(dataDir, players, { kind: 'drain', afterMs: 0 }, random.fork());
  } catch (error) {
    say(`seed ${seed}, round ${round}: again with  npm run faults -- --seed ${seed} --rounds ${round + 1}`);
    say(`the data is in ${dataDir}`);
    throw error;
  }
  rmSync(dataDir, { recursive: true, force: true });
  const operations = players.reduce((sum, player) => sum + player.operations, 0);
  return { rounds: round, operations, restartsMs: restartsMs.sort((a, b) => a - b), endings };
}

async function playRound(
  dataDir: string,
  players: readonly Player[],
  ending: Ending,
  random: SeededRandom,
): Promise<{ readyMs: number }> {
  const victim = await Victim.start(dataDir, ending.kind === 'fault-point' ? ending.point : undefined);
  try {
    const over = new AbortController();
    const signal = anySignal(over.signal, victim.signal);
    const checks: Promise<void>[] = [];
    const plays = players.map(async (player) => {
      const own = random.fork();
      try {
        const checked = player.verify(victim.client, victim.signal); // the drain completes, unless a fault point interrupts it
        checks.push(checked);
        await checked;
        await player.play(victim.client, own, signal);
      } catch (error) {
        if (!signal.aborted && !(await victim.explains(error))) throw error;
      }
    });
    const played = Promise.all(plays);
    const isEarly = 'early' in ending && ending.early === true;
    if (!isEarly) await Promise.race([Promise.allSettled(checks), victim.whenOver]);
    await Promise.race([played, later(ending.afterMs)]);
    if (ending.kind === 'kernel-host' && !victim.isOver) {
      victim.killKernelHost();
      await Promise.race([played, later(400)]);
    }
    over.abort(new Error('this life comes to its end'));
    victim.end(ending.kind === 'drain' ? 'SIGTERM' : 'SIGKILL');
    await victim.over();
    await Promise.all(players.map((player) => player.rest(ending.kind === 'drain')));
    await played;
    const [complaint] = victim.complaints.filter((line) => !line.includes('kernel host'));
    if (complaint !== undefined) throw new Error(`the server logged ${complaint}`);
    return { readyMs: victim.readyMs };
  } finally {
    victim.end('SIGKILL');
  }
}
