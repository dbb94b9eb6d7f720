// tier: whole, because it installs and starts an older build
/** `troupe migrate`: a conversion is rehearsed on a copy, or made without serving, and newer stores are refused. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import type { Migrated } from '#src/operate/maintenance/migrate.ts';
import { CURRENT_FORMAT } from '#storage/migrations.ts';
import { troupe } from '#test/faces/cli/captured-terminal.ts';
import { startServerProcess } from '#test/support/child-server.ts';
import { pythonOfTests, SETTINGS } from '#test/support/server-fixture.ts';
import { temporaryDirectory } from '#test/support/store/temporary-store.ts';
import { checkConvertedStore, placeOfConversion, setFormat, writeOldStore } from './old-store.ts';

test('a rehearsal converts a copy, reports its duration, and leaves the store unchanged', async (t) => {
  const dataDir = temporaryDirectory(t);
  const env = { TROUPE_DATA_DIR: dataDir };
  await writeOldStore(dataDir, 500);
  const { exitCode, out, err } = await troupe(['migrate', '--check', '--json'], { env });
  assert.equal(exitCode, 0, err);
  const found = JSON.parse(out) as Migrated & { readonly copyMs: number };
  assert.deepEqual([found.from, found.to, found.damage], [1, CURRENT_FORMAT.version, []]);
  assert.ok(found.ms > 0 && found.copyMs > 0 && found.records > 2000);
  assert.ok(!existsSync(join(dataDir, 'rehearsal')));
  assert.equal((await placeOfConversion(dataDir)).format, 1);

  const converted = await troupe(['migrate'], { env });
  assert.match(
    converted.out,
    new RegExp(`: format 1 to ${CURRENT_FORMAT.version} in [\\d.]+ s, \\d+ records, all sound\n$`),
  );
  assert.match(
    converted.err,
    /^The store is being converted from format 1 to 2: 0 of \d+ records \(0 %\)\.\n/,
  );
  await checkConvertedStore(dataDir, 500);
});

test('a server refuses the store of a newer release, names that release and gives advice', async (t) => {
  const dataDir = temporaryDirectory(t);
  await writeOldStore(dataDir, 1);
  const newer = CURRENT_FORMAT.version + 1;
  await setFormat(dataDir, newer);
  for (const workers of ['1', '2'])
    await assert.rejects(
      startServerProcess(dataDir, { ...SETTINGS, ...pythonOfTests(), TROUPE_WORKERS: workers }),
      new RegExp(
        `has format ${newer}; this release reads up to ${CURRENT_FORMAT.version}\\. Start the newer release again, or restore the backup`,
      ),
    );
  const backup = await troupe(['backup', join(temporaryDirectory(t), 'b')], {
    env: { TROUPE_DATA_DIR: dataDir },
  });
  assert.match(backup.err, new RegExp(`has format ${newer}`));
});
