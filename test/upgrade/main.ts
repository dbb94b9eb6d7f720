/**
 * `npm run upgrade`: has an invented next release convert a large store, and kills the conversion several times.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scriptOptions } from '#test/support/script-options.ts';
import { killedUpgrade } from './killed-upgrade.ts';

const USAGE = `Has an invented next release convert a large store, kills it (kill -9) meanwhile, and checks that it finishes.

Usage: npm run upgrade -- [options]

  --runs N     the store has so many runs; 1000000
  --kills N    so many starts are killed; 8
  -h, --help   shows this text`;

const { runs, kills } = scriptOptions(USAGE, {
  runs: { type: 'string', default: '1000000' },
  kills: { type: 'string', default: '8' },
});
const dataDir = mkdtempSync(join(tmpdir(), 'troupe-upgrade-'));
try {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const lines = await killedUpgrade({ dataDir, runs: Number(runs), kills: Number(kills), say });
  for (const { from, to, done, total, percent, recordsPerS, leftS } of lines)
    say(
      `  ${from} → ${to}: ${done} of ${total} (${percent} %), ${recordsPerS} a second, ${leftS ?? '?'} s left`,
    );
} finally {
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5 });
}
