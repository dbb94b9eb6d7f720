/**
 * `npm run upgrade`: opens a store that the server of an archive has written, and kills the conversion of a large store several
 * times.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { scriptOptions } from '#test/support/script-options.ts';
import { openArchivedStore } from './archived-store.ts';
import { killedUpgrade } from './killed-upgrade.ts';

const USAGE = `Has the server of an archive write a store with objects of every kind, and checks that the server of this checkout serves all of them.
Then has an invented next release convert a large store, kills it (kill -9) meanwhile, and checks that it finishes.

Usage: npm run upgrade -- [options]

  --archive FILE  the archive of a release (troupe-1.0.0.tgz); without it, this checkout is packed
  --runs N        the large store has so many runs; 1000000
  --kills N       so many starts are killed; 8
  -h, --help      shows this text`;

const { archive, runs, kills } = scriptOptions(USAGE, {
  archive: { type: 'string' },
  runs: { type: 'string', default: '1000000' },
  kills: { type: 'string', default: '8' },
});
const folder = mkdtempSync(join(tmpdir(), 'troupe-upgrade-'));
const cleanUps: (() => Promise<void>)[] = [];
try {
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const owner = { after: (cleanUp: () => Promise<void>) => void cleanUps.push(cleanUp) };
  const [archived, large] = ['archived', 'large'].map((name) => join(folder, name)) as [string, string];
  for (const path of [archived, large]) mkdirSync(path);
  const named = archive === undefined ? undefined : resolve(archive);
  await openArchivedStore(owner, { folder: archived, archive: named, say });
  const lines = await killedUpgrade({ dataDir: large, runs: Number(runs), kills: Number(kills), say });
  for (const { from, to, done, total, percent, recordsPerS, leftS } of lines)
    say(
      `  ${from} → ${to}: ${done} of ${total} (${percent} %), ${recordsPerS} a second, ${leftS ?? '?'} s left`,
    );
} finally {
  for (const cleanUp of cleanUps) await cleanUp();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
