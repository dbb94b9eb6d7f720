/** Simulates seeds one after the other, and reports them. */
import { coverage, observeCharts } from './coverage.ts';
import { explain } from './explain.ts';
import { shrink } from './shrink.ts';
import { type SimulationOptions, type SimulationReport, simulate } from './simulation.ts';

const MOMENTS = ['jobs', 'hooks'] as const;

export interface SeedsOptions {
  readonly first: number;
  readonly last: number;
  /** After so many seconds of one core no further seed is begun. */
  readonly limitS: number;
  /** How often each seed is simulated. */
  readonly times: number;
  /** Whether states and events that were not reached are named. */
  readonly lists: boolean;
  /** Whether to look for a shorter simulation with the same failure before the failure is printed. */
  readonly shrinks: boolean;
  /** The name of the planted fault. */
  readonly mutant: string | undefined;
  readonly simulation: SimulationOptions;
  readonly say: (line: string) => void;
}

/** Resolves with whether no seed had a problem. It ends with the first seed that has one. */
export async function simulateSeeds(options: SeedsOptions): Promise<boolean> {
  const { first, last, limitS, times, simulation, lists, say } = options;
  observeCharts();
  const before = process.cpuUsage();
  let operations = 0;
  const kills = { jobs: 0, hooks: 0 };
  let isSound = true;
  const seconds = () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  for (let seed = first; seed <= last && isSound && seconds() < limitS; seed++) {
    const reports: SimulationReport[] = [];
    for (let at = 0; at < times; at++) reports.push(await simulate(seed, simulation));
    const [report] = reports;
    if (report === undefined) break;
    operations += reports.reduce((sum, { counts }) => sum + (counts.get('operations') ?? 0), 0);
    for (const kind of MOMENTS) kills[kind] += report.counts.get(`kills around ${kind}`) ?? 0;
    say(lineOf(report));
    for (const line of report.lines) say(line.trimEnd());
    const digests = new Set(reports.map(({ digest }) => digest));
    const problems = [...report.problems];
    if (digests.size > 1)
      problems.push(`the digests of ${times} simulations differ: ${[...digests].join(', ')}`);
    if (report.realWaits > 0) problems.push(`the world waited ${report.realWaits} times for something real`);
    isSound = problems.length === 0;
    if (!isSound) for (const line of await explanation(report, problems, options)) say(line);
  }
  const tookS = seconds();
  for (const kind of MOMENTS) if (kills[kind] > 0) say(`${kills[kind]} kills around the moments of ${kind}`);
  say(
    `${operations} operations in ${tookS.toFixed(1)} s of one core: ${Math.round(operations / tookS)} a second`,
  );
  for (const { chart, reached, possible, missing } of coverage())
    say(
      `${chart}: ${reached} of ${possible} state × event${lists && missing.length > 0 ? `; missing: ${missing.join(', ')}` : ''}`,
    );
  return isSound;
}

async function explanation(
  report: SimulationReport,
  problems: readonly string[],
  { simulation, shrinks, mutant }: SeedsOptions,
): Promise<readonly string[]> {
  if (!shrinks || report.problems.length === 0) return explain(report, problems, simulation, mutant);
  const smaller = await shrink(report.seed, simulation);
  const again = await simulate(report.seed, smaller);
  return explain(again, again.problems, smaller, mutant);
}

function lineOf({ seed, digest, counts, simulatedMs, realMs }: SimulationReport): string {
  const of = (what: string) => `${counts.get(what) ?? 0} ${what}`;
  const life = `${(simulatedMs / 1000).toFixed(0)} simulated seconds in ${(realMs / 1000).toFixed(1)} s`;
  return `seed ${seed}: ${digest}, ${life}, ${of('operations')}, ${of('events')}, ${of('kernels')}, ${of('crashes')}${counts.has('killed workers') ? `, ${of('killed workers')}` : ''}`;
}
