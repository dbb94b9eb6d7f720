/**
 * `npm run faults -- [--seconds N] [--rounds N] [--seed S] [--restart-limit-ms N]` kills servers that run notebooks.
 * `npm run faults -- --agents N [--seed S]` kills servers during an agent's tool calls, for N seeds from S on.
 */
import { parseArgs } from 'node:util';
import { driveAgentFaults } from './agent-calls.ts';
import { driveFaults } from './drive.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    seed: { type: 'string' },
    agents: { type: 'string' },
    'restart-limit-ms': { type: 'string', default: '2000' },
  },
});
if (values.agents === undefined) await killNotebooks();
else await killAgents(Number(values.agents), Number(values.seed ?? 1));

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

async function killNotebooks(): Promise<void> {
  const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
  say(`seed ${seed}`);
  const { rounds, operations, restartsMs, endings } = await driveFaults({
    seed,
    seconds: Number(values.seconds ?? (values.rounds === undefined ? 60 : Number.POSITIVE_INFINITY)),
    rounds: Number(values.rounds ?? Number.POSITIVE_INFINITY),
    restartLimitMs: Number(values['restart-limit-ms']),
    say,
  });
  const at = (share: number) => Math.round(restartsMs[Math.floor(share * (restartsMs.length - 1))] ?? 0);
  say(`${rounds} rounds, ${operations} operations, ends: ${JSON.stringify(endings)}`);
  say(`restart to ready: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`);
}
