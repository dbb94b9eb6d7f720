/** `npm run soak`: uses a server for a while, and reports how fast its resources grow. */
import { scriptOptions } from '#test/support/script-options.ts';
import { LIMITS } from './sample.ts';
import { soak } from './soak.ts';

const USAGE = `Uses a server in notebooks and conversations, and prints how fast memory, descriptors, threads, the store and control groups
grow for each day. Fails when they grow faster than the limits in test/soak/sample.ts.

Usage: npm run soak -- [options]

  --minutes N   goes on for so long; 5
  --lanes N     uses so many notebooks at once; 3
  -h, --help    shows this text`;

const values = scriptOptions(USAGE, {
  minutes: { type: 'string', default: '5' },
  lanes: { type: 'string', default: '3' },
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
