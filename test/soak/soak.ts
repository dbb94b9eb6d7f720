/** Uses a server for a while, samples it whenever it is at rest, and returns how fast it grows. */
import { performance } from 'node:perf_hooks';
import { startChildServer } from '#test/support/child-server.ts';
import { eventually, kernelsOf } from '#test/support/processes.ts';
import type { Owner } from '#test/support/server-fixture.ts';
import { startScriptedModel } from '#test/support/stand-ins/scripted-model.ts';
import { workOneRound } from './round.ts';
import { LIMITS, sample } from './sample.ts';
import { type Slope, slopesOf, type TimedSample } from './slopes.ts';

export interface SoakOptions {
  readonly owner: Owner;
  readonly minutes: number;
  /** The number of rounds at the same time. */
  readonly lanes: number;
  /** Each lane has at least this many rounds, however long they take. */
  readonly minRounds: number;
  readonly say: (line: string) => void;
}

export interface SoakReport {
  readonly rounds: number;
  readonly samples: readonly TimedSample[];
  readonly slopes: readonly Slope[];
}

/** Rejects when the server does anything wrong. */
export async function soak({ owner, minutes, lanes, minRounds, say }: SoakOptions): Promise<SoakReport> {
  const model = await startScriptedModel(owner);
  const server = await startChildServer(owner, {
    TROUPE_OPENAI_COMPATIBLE_URL: model.url,
    TROUPE_LOG_LEVEL: 'info',
  });
  const samples: TimedSample[] = [];
  const startedAtMs = performance.now();
  const untilMs = startedAtMs + minutes * 60_000;
  let rounds = 0;
  while (performance.now() < untilMs || samples.length < minRounds) {
    await Promise.all(
      Array.from({ length: lanes }, (_, lane) => workOneRound(server, model, `lane-${lane}`)),
    );
    rounds += lanes;
    await eventually('the server is at rest', () => kernelsOf(server.pid).length === 0);
    const values = await sample(server);
    samples.push({ atMs: performance.now() - startedAtMs, values });
    say(
      `${Math.round((performance.now() - startedAtMs) / 1000)} s, ${rounds} rounds: ${JSON.stringify(values)}`,
    );
  }
  const { code } = await server.end('SIGTERM');
  if (code !== 0) throw new Error(`The server ended with ${code}: ${JSON.stringify(server.log.slice(-3))}`);
  const errors = server.log.filter(({ level }) => level === 'error' || level === 'fatal');
  if (errors.length > 0) throw new Error(`The server logged errors: ${JSON.stringify(errors.slice(0, 3))}`);
  return { rounds, samples, slopes: slopesOf(samples, LIMITS) };
}
