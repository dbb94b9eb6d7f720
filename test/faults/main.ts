/** `npm run faults`: kills servers, or workers of servers, that are in the middle of work. */
import { scriptOptions } from '#test/support/script-options.ts';
import { driveAgentFaults } from './agent-calls.ts';
import { driveFaults } from './drive.ts';
import { driveNodeFaults } from './node-deaths.ts';
import { drivePowerCuts } from './power-cuts/power-cuts.ts';
import { driveRecorded } from './recorded.ts';
import { driveWorkerFaults } from './worker-deaths.ts';

const USAGE = `Kills servers that run notebooks, again and again, and compares what they have afterwards with what they had acknowledged.

Usage: npm run faults -- [options]

  --workers N            kills single workers of servers that have N of them, and whole servers
  --agents N             kills servers during an agent's tool calls, for N seeds, and does nothing else
  --reloads N            replaces all workers of a server N times while clients use it, and judges what they saw
  --recorded N           does N things of --workers to a server, and judges what clients saw in the same way
  --power-cuts N         cuts the power of the disk below a store, at N moments of recorded work, with --workers or without
  --nodes                kills, stops and cuts off kernel nodes, for --rounds (300), with --workers or without
  --slow-flush-ms N      with --reloads and --recorded: how much longer a commit takes at most; 40
  --seconds N            goes on for so long; 60 without --rounds
  --rounds N             ends after so many rounds
  --seed N               repeats the choices of an earlier run, which prints its seed
  --restart-limit-ms N   fails when a server is ready later than this after it was killed; 2000
  --outage-limit-ms N    with --workers: fails when a workspace is served later than this; 1000
  -h, --help             shows this text`;

/** A restart of a server takes as long as some hundred other checks. */
const CUTS_PER_RESTART = 25;

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const values = scriptOptions(USAGE, {
  seconds: { type: 'string' },
  rounds: { type: 'string' },
  seed: { type: 'string' },
  agents: { type: 'string' },
  workers: { type: 'string' },
  reloads: { type: 'string' },
  recorded: { type: 'string' },
  'power-cuts': { type: 'string' },
  nodes: { type: 'boolean' },
  'slow-flush-ms': { type: 'string', default: '40' },
  'outage-limit-ms': { type: 'string', default: '1000' },
  'restart-limit-ms': { type: 'string', default: '2000' },
});
if (values.nodes === true) await killNodes();
else if (values.agents !== undefined) await killAgents(Number(values.agents), Number(values.seed ?? 1));
else if (values.reloads !== undefined) await disturb('reload', Number(values.reloads));
else if (values.recorded !== undefined) await disturb('fault', Number(values.recorded));
else if (values['power-cuts'] !== undefined) await cutPower(Number(values['power-cuts']));
else if (values.workers !== undefined) await killWorkers(Number(values.workers));
else await killNotebooks();

async function killNodes(): Promise<void> {
  const cleanUps: (() => Promise<void>)[] = [];
  const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.push(cleanUp) };
  const { rounds = '300', workers = '1' } = values;
  try {
    const seed = Number(values.seed ?? 1);
    const report = await driveNodeFaults({
      rounds: Number(rounds),
      seed,
      workers: Number(workers),
      owner,
      say,
    });
    say(JSON.stringify(report));
  } finally {
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  }
}

async function killAgents(count: number, first: number): Promise<void> {
  const cleanUps: (() => Promise<void>)[] = [];
  const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.push(cleanUp) };
  const seeds = Array.from({ length: count }, (_, i) => first + i);
  try {
    const { rounds, endings, cutOff } = await driveAgentFaults({ seeds, owner, say });
    say(`${rounds} seeds, ends: ${JSON.stringify(endings)}`);
    say(`calls that were cut off: ${cutOff.done} with their work done, ${cutOff.notDone} without`);
  } finally {
    for (const cleanUp of cleanUps) await cleanUp();
  }
}

async function cutPower(cuts: number): Promise<void> {
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  say(`seed ${seed}`);
  const serverCuts = Math.floor(cuts / 2);
  const report = await drivePowerCuts({
    seed,
    storeCuts: cuts - serverCuts,
    serverCuts,
    restarts: Math.ceil(serverCuts / CUTS_PER_RESTART),
    workers: Number(values.workers ?? 1),
    say,
  });
  say(
    report === undefined ? 'there is no gcc, which compiles the recorder of writes' : JSON.stringify(report),
  );
  if (report === undefined) process.exitCode = 1;
}

async function killNotebooks(): Promise<void> {
  const { rounds, operations, restartsMs, endings } = await driveFaults({
    ...extent(),
    restartLimitMs: Number(values['restart-limit-ms']),
  });
  say(`${rounds} rounds, ${operations} operations, ends: ${JSON.stringify(endings)}`);
  say(`restart to ready: ${spread(restartsMs)}`);
}

async function killWorkers(workers: number): Promise<void> {
  const { rounds, operations, outagesMs, endings } = await driveWorkerFaults({
    ...extent(),
    workers,
    outageLimitMs: Number(values['outage-limit-ms']),
  });
  say(`${rounds} rounds, ${operations} operations, ends: ${JSON.stringify(endings)}`);
  say(`death to every workspace served: ${spread(outagesMs)}`);
}

async function disturb(disturbance: 'reload' | 'fault', steps: number): Promise<void> {
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  say(`seed ${seed}`);
  const report = await driveRecorded({
    disturbance,
    steps,
    seed,
    seconds: Number(values.seconds ?? Number.POSITIVE_INFINITY),
    workers: Number(values.workers ?? 3),
    slowFlushMs: Number(values['slow-flush-ms']),
    say,
  });
  say(
    `${report.steps} steps ${JSON.stringify(report.endings)}: no violation in ${JSON.stringify(report.extent)}`,
  );
}

function extent() {
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  say(`seed ${seed}`);
  const seconds = Number(values.seconds ?? (values.rounds === undefined ? 60 : Number.POSITIVE_INFINITY));
  return { seed, seconds, rounds: Number(values.rounds ?? Number.POSITIVE_INFINITY), say };
}

function spread(sortedMs: readonly number[]): string {
  const at = (share: number) => Math.round(sortedMs[Math.floor(share * (sortedMs.length - 1))] ?? 0);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`;
}
