import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { BackupSchedule } from '#src/maintenance/backup-schedule.ts';
import { readManifest } from '#src/maintenance/manifest.ts';
import { openStore } from '#storage/open-store.ts';
import { filledDirectory } from '#test/support/filled-directory.ts';
import { rememberingLog } from '#test/support/temporary-store.ts';

test('a clock that was ahead keeps no backup from being made, and none that is newer is deleted for it', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const [past, ahead] = ['troupe-2026-01-01T00-00-00Z', 'troupe-2099-01-01T00-00-00Z'];
  for (const name of [past, ahead]) mkdirSync(join(directory, name), { recursive: true });
  const { log } = rememberingLog();
  const schedule = new BackupSchedule({
    directory,
    everyMs: 3_600_000,
    keep: 2,
    dataDir,
    copyStore: (to) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true })),
    log,
  });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  const names = readdirSync(directory).sort();
  assert.equal(names.length, 2);
  assert.equal(names[0], past);
  assert.equal(readManifest(join(directory, names[1]!)).files.length, 2);
});

test('an operator is warned while backups cannot be made, and not any more once they can', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  writeFileSync(directory, 'a file in the place of the directory');
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  assert.deepEqual(schedule.warnings, ['The latest backup could not be made: look into the log.']);
  rmSync(directory);
  await schedule.look();
  assert.deepEqual(schedule.warnings, []);
  assert.equal(readdirSync(directory).length, 1);
});

test('a server makes backups at its interval and keeps the newest ones', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  for (const day of ['01', '02', '03'])
    mkdirSync(join(directory, `troupe-2026-01-${day}T00-00-00Z`), { recursive: true });
  mkdirSync(join(directory, 'troupe-2026-01-04T00-00-00Z.partial-1'));
  mkdirSync(join(directory, 'of-somebody-else'));
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  t.after(() => store[Symbol.asyncDispose]());
  const { log, lines } = rememberingLog();
  const copyStore = (to: string, compact: boolean) => store.copyTo(to, compact);
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  await schedule.look(); // none is due
  const names = readdirSync(directory).sort();
  assert.deepEqual(names.slice(0, 2), ['of-somebody-else', 'troupe-2026-01-03T00-00-00Z']);
  assert.equal(names.length, 3);
  assert.equal(readManifest(join(directory, names[2]!)).files.length, 2);
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ['a backup was made', 'an old backup was deleted', 'an old backup was deleted'],
  );
  rmSync(directory, { recursive: true });
});

test('an old backup has its name only while it is whole, whenever the server is killed', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const old = join(directory, 'troupe-2026-01-01T00-00-00Z');
  mkdirSync(old, { recursive: true });
  for (let n = 0; n < 1000; n++) writeFileSync(join(old, `f${n}`), '');
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 1, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  let isDone = false;
  const done = schedule.look().finally(() => (isDone = true));
  while (!isDone) {
    if (existsSync(old)) assert.equal(readdirSync(old).length, 1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  assert.equal(existsSync(old), false);
  assert.equal(readdirSync(directory).length, 1);
});
