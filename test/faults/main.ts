/** `npm run faults -- [--seconds N] [--rounds N] [--seed S] [--restart-limit-ms N]` */
import { parseArgs } from 'node:util';
import { driveFaults } from './drive.ts';

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const { values } = parseArgs({
  options: {
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    seed: { type: 'string' },
    'restart-limit-ms': { type: 'string', default: '2000' },
  },
});
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
