/**
 * `npm run fuzz:databases [-- --databases N] [-- --minutes M] [-- --seed S]` has notebooks of a server query N hostile databases
 * (10,000), in rounds with a new server each, until M minutes (60) have passed. It prints its seed first, then the outcomes of
 * the statements, and ends with exit code 1 when a round fails.
 */
import { randomInt } from 'node:crypto';
import { parseArgs } from 'node:util';
import { AsyncDisposableStack } from '#src/base/async/async-disposable-stack.ts';
import { SeededRandom } from '#test/support/random.ts';
import type { Owner } from '#test/support/server-fixture.ts';
import { fuzzThroughServer } from './server-fuzz.ts';

const ROUND_DATABASES = 200;

const { values } = parseArgs({
  options: {
    databases: { type: 'string', default: '10000' },
    minutes: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
if (values.help) {
  process.stdout.write(`npm run fuzz:databases -- [options]: queries damaged database files with generated statements

  --databases <n>  how many files (default 10000)
  --minutes <n>    the longest time (default 60)
  --seed <n>       the first seed, to repeat a run (default: a random one, which is printed)
`);
  process.exit();
}
const endsAt = Date.now() + Number(values.minutes) * 60_000;
let left = Number(values.databases);
for (let seed = Number(values.seed); left > 0 && Date.now() < endsAt; seed++) {
  const databases = Math.min(left, ROUND_DATABASES);
  process.stderr.write(`${databases} databases, seed ${seed}\n`);
  await round(seed, databases);
  left -= databases;
}

async function round(seed: number, databases: number): Promise<void> {
  await using cleanUps = new AsyncDisposableStack();
  const owner: Owner = { after: (cleanUp) => void cleanUps.use({ [Symbol.asyncDispose]: cleanUp }) };
  const outcomes = await fuzzThroughServer(owner, { random: new SeededRandom(seed), databases });
  process.stderr.write(`${JSON.stringify(outcomes)}\n`);
}
