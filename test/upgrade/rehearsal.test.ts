// tier: whole, because it starts servers and converts stores
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
import { writeUnreleased } from '#test/support/store/unreleased-store.ts';
import {
  asNextRelease,
  checkConvertedStore,
  NEXT_RELEASE,
  placeOfConversion,
  writeRuns,
} from './many-runs.ts';

test('a rehearsal converts a copy, reports its duration, and leaves the store unchanged', async (t) => {
  const dataDir = temporaryDirectory(t);
  const env = { TROUPE_DATA_DIR: dataDir };
  await writeRuns(dataDir, 500);
  const { version } = CURRENT_FORMAT;
  using _next = asNextRelease();
  const { exitCode, out, err } = await troupe(['migrate', '--check', '--json'], { env });
  assert.equal(exitCode, 0, err);
  const found = JSON.parse(out) as Migrated & { readonly copyMs: number };
  assert.deepEqual([found.from, found.to, found.damage], [version, version + 1, []]);
  assert.ok(found.ms > 0 && found.copyMs > 0 && found.records > 500);
  assert.ok(!existsSync(join(dataDir, 'rehearsal')));
  assert.equal((await placeOfConversion(dataDir)).format, version);

  const converted = await troupe(['migrate'], { env });
  const steps = `format ${version} to ${version + 1}`;
  assert.match(converted.out, new RegExp(`: ${steps} in [\\d.]+ s, \\d+ records, all sound\n$`));
  assert.match(
    converted.err,
    new RegExp(`^The store is being converted from ${steps}: 0 of \\d+ records \\(0 %\\)\\.\n`),
  );
  await checkConvertedStore(dataDir, 500);
});

test('a server refuses the store of a newer release, names that release and gives advice', async (t) => {
  const dataDir = temporaryDirectory(t);
  const settings = { ...SETTINGS, ...pythonOfTests() };
  const { version } = CURRENT_FORMAT;
  const newer = await startServerProcess(dataDir, { ...settings, ...NEXT_RELEASE.env }, NEXT_RELEASE.command);
  await newer.end('SIGTERM');
  for (const workers of ['1', '2'])
    await assert.rejects(
      startServerProcess(dataDir, { ...settings, TROUPE_WORKERS: workers }),
      new RegExp(
        `has format ${version + 1}; this release reads up to ${version}\\. Start the newer release again, or restore the backup`,
      ),
    );
  const backup = await troupe(['backup', join(temporaryDirectory(t), 'b')], {
    env: { TROUPE_DATA_DIR: dataDir },
  });
  assert.match(backup.err, new RegExp(`has format ${version + 1}`));
});

test('a server refuses the store of a build before 1.0.0, and says how its notebooks move', async (t) => {
  const dataDir = temporaryDirectory(t);
  await writeUnreleased(join(dataDir, 'store'), 1);
  for (const workers of ['1', '2'])
    await assert.rejects(
      startServerProcess(dataDir, { ...SETTINGS, ...pythonOfTests(), TROUPE_WORKERS: workers }),
      /was written by a build before 1\.0\.0 \(format 1 of those builds\).* \(troupe notebooks export\), and import them/,
    );
});
