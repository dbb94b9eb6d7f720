/**
 * `npm run soak -- [--minutes N] [--lanes N]` uses a server for N minutes (5), in so many notebooks at once (3), and prints how
 * fast memory, descriptors, threads, the store and control groups grow for each day. It fails above the limits in sample.ts.
 */
import { parseArgs } from 'node:util';
import { LIMITS } from './sample.ts';
import { soak } from './soak.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '5' }, lanes: { type: 'string', default: '3' } },
});
const say = (line: string): void => void process.stdout.write(`${line}\n`);
const cleanUps: (() => Promise<void>)[] = [];
const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.unshift(cleanUp) };
try {
  const { rounds, slopes } = await soak({
    owner,
    minutes: Number(values.minutes),
    lanes: Number(values.lanes),
    minRounds: 6,
    say,
  });
  say(`${rounds} rounds`);
  for (const { name, first, last, perDay, isTooSteep } of slopes)
    say(
      `${isTooSteep ? 'TOO STEEP ' : ''}${name}: ${first} → ${last}, ${Math.round(perDay)} a day (limit ${LIMITS[name]?.perDay})`,
    );
  if (slopes.some(({ isTooSteep }) => isTooSteep)) process.exitCode = 1;
} finally {
  for (const cleanUp of cleanUps) await cleanUp();
}
