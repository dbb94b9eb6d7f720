import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { BackupSchedule } from '#src/operate/maintenance/backup-schedule.ts';
import { readManifest } from '#src/operate/maintenance/manifest.ts';
import { verify } from '#src/operate/maintenance/verify.ts';
import { openStore } from '#storage/open-store.ts';
import { eventually } from '#test/support/processes.ts';
import { filledDirectory, things } from '#test/support/store/filled-directory.ts';
import { fillDisk, noSmallDisk, smallDisk } from '#test/support/store/small-disk.ts';
import { rememberingLog } from '#test/support/store/temporary-store.ts';

const HOUR_MS = 3_600_000;

/** Returns how many files the folder has; undefined when it is not there. */
function filesIn(folder: string): number | undefined {
  try {
    return readdirSync(folder).length;
  } catch {
    return undefined;
  }
}

/** Returns the time in the name of a backup, in milliseconds. */
function timeOf(backup: string): number {
  return Date.parse(backup.replace(/^troupe-(.*)T(..)-(..)-(..)Z$/, '$1T$2:$3:$4Z'));
}

test('a clock that was ahead prevents no backup, and does not cause a newer backup to be deleted', async (t) => {
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

test('a warning says that backups cannot be made, and ends when backups succeed again', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  writeFileSync(directory, 'a file in the place of the directory');
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const schedule = new BackupSchedule({ directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  assert.deepEqual(schedule.warnings, [
    { kind: 'backup_failed', text: 'The latest backup could not be made: look into the log.' },
  ]);
  assert.deepEqual([schedule.status?.hasFailed, schedule.status?.newestAtMs], [true, undefined]);
  rmSync(directory);
  const second = () => Math.floor(Date.now() / 1000) * 1000; // the name of a backup has its second
  const fromMs = second();
  await schedule.look();
  assert.deepEqual(schedule.warnings, []);
  const { hasFailed, newestAtMs = 0 } = schedule.status ?? {};
  assert.ok(hasFailed === false && fromMs <= newestAtMs && newestAtMs <= second());
  assert.equal(readdirSync(directory).length, 1);
});

test('a warning says that the folder of the backups does not respond, until the folder responds', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  mkdirSync(directory);
  // A pipe without a reader hangs as a file system does whose server is gone.
  const probe = join(directory, '.troupe-probe');
  assert.equal(spawnSync('mkfifo', [probe]).status, 0);
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const options = { directory, everyMs: 3_600_000, keep: 2, dataDir, copyStore, log, silentAfterMs: 50 };
  await using schedule = new BackupSchedule(options);
  const warning = await eventually('the warning', () => schedule.warnings[0]);
  assert.equal(warning.kind, 'backup_silent');
  assert.match(warning.text, /^The folder of the backups has not responded for \d+ seconds.*Check /);
  closeSync(openSync(probe, constants.O_RDONLY | constants.O_NONBLOCK));
  await eventually('the warning has ended', () => schedule.warnings.length === 0);
});

test('a store makes no backup into the folder of another store, which a warning names; a moved store continues its own backups', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const { log, lines } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const scheduleOf = (storeId: string, from = dataDir) =>
    new BackupSchedule({
      directory,
      everyMs: HOUR_MS,
      keep: 2,
      dataDir: from,
      copyStore,
      log,
      storeId: () => storeId,
    });
  await using first = scheduleOf('store-1');
  await first.look();
  assert.deepEqual(first.warnings, []);
  await using second = scheduleOf('store-2');
  await second.look();
  const [warning] = second.warnings;
  assert.equal(warning?.kind, 'backup_failed');
  assert.ok(warning.text.includes(`another store (${dataDir} on `), warning.text);
  assert.ok(warning.text.includes(`delete ${join(directory, '.troupe-owner')}`), warning.text);
  assert.equal(second.status?.hasFailed, true);
  assert.deepEqual(lines.filter(({ level }) => level === 'error').length, 1);
  const moved = `${dataDir}-moved`;
  cpSync(dataDir, moved, { recursive: true });
  t.after(() => rmSync(moved, { recursive: true, force: true }));
  await using restored = scheduleOf('store-1', moved);
  await restored.look();
  assert.deepEqual(restored.warnings, []);
  const owner = join(directory, '.troupe-owner');
  const makers = [() => spawnSync('mkfifo', [owner]), () => writeFileSync(owner, 'x'.repeat(1 << 20))];
  for (const make of makers) {
    rmSync(owner);
    make();
    await second.look();
    assert.match(second.warnings[0]?.text ?? '', /another store \(unknown on unknown\)/);
  }
  rmSync(owner);
  await second.look();
  assert.deepEqual(second.warnings, []);
});

test('a folder on a full disk is not taken by any store, and backups begin when there is space', {
  skip: noSmallDisk,
}, async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = smallDisk(t, 64);
  const filler = fillDisk(directory);
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const options = { directory, everyMs: HOUR_MS, keep: 2, dataDir, copyStore, log };
  await using schedule = new BackupSchedule({ ...options, storeId: () => 'store-1' });
  await schedule.look();
  assert.equal(schedule.warnings[0]?.text, 'The latest backup could not be made: look into the log.');
  rmSync(filler);
  await schedule.look();
  assert.deepEqual(schedule.warnings, []);
});

test('a server makes backups at its interval and keeps the newest backups', async (t) => {
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
  await schedule.look(); // no backup is due
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

test('an old backup has its name only while it is complete, even if the server is killed at any moment', async (t) => {
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
    const files = filesIn(old);
    // If it has lost its name meanwhile, its files may have been deleted while they were counted.
    if (files !== undefined && existsSync(old)) assert.equal(files, 1000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  assert.equal(existsSync(old), false);
  assert.equal(readdirSync(directory).length, 1);
});

test('increments are added to the latest backup, and a new backup is made when the increments outgrow that backup', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const store = await openStore(join(dataDir, 'store'), assert.fail);
  const { log, lines } = rememberingLog();
  let nowMs = 0; // the schedule's own timer finds no increment due: only the calls of this test do
  const schedule = new BackupSchedule({
    directory,
    everyMs: HOUR_MS,
    keep: 2,
    dataDir,
    copyStore: (to, compact) => store.copyTo(to, compact),
    increments: { everyMs: HOUR_MS, store },
    nowMs: () => nowMs,
    log,
  });
  t.after(async () => {
    await schedule[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  await schedule.look();
  const backups = () => readdirSync(directory).filter((name) => name.endsWith('Z'));
  const [first = ''] = backups();
  for (let n = 0; backups().length < 2; n++) {
    assert.ok(n < 50, 'increments of 4 MB each have become larger than 64 MiB');
    store.write((tx) => tx.put(things, `${n}`.padEnd(4_000_000), 'ws_1', 'large'));
    await store.durable();
    // The name of a backup is the second in which it was made, so the next backup must be made in a later one.
    if (n === 14) await eventually('the next second', () => Date.now() >= timeOf(first) + 1000);
    nowMs += HOUR_MS;
    await schedule.look();
  }
  const { increments } = await verify(join(directory, first));
  assert.ok(increments > 14 && increments < 22, `${increments} increments`);
  assert.deepEqual(schedule.warnings, []);
  assert.ok(lines.some(({ msg }) => msg === 'an increment was added to the backup'));
});

test('early backups do not displace the backups of earlier days', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const ago = (hours: number) =>
    `troupe-${new Date(Date.now() - hours * 3_600_000).toISOString().slice(0, 19).replaceAll(':', '-')}Z`;
  const [days, early] = [
    [ago(72), ago(48), ago(24)],
    [ago(23.9), ago(23.8), ago(23.7)],
  ];
  for (const name of [...days, ...early]) mkdirSync(join(directory, name), { recursive: true });
  const { log } = rememberingLog();
  const copyStore = (to: string) => Promise.resolve(cpSync(join(dataDir, 'store'), to, { recursive: true }));
  const schedule = new BackupSchedule({
    directory,
    everyMs: 23 * 3_600_000,
    keep: 3,
    dataDir,
    copyStore,
    log,
  });
  t.after(() => schedule[Symbol.asyncDispose]());
  await schedule.look();
  const names = readdirSync(directory).sort();
  assert.deepEqual(names.slice(0, -1), [days[1], early[1], early[2]]);
});

test('several restores within a day do not delete their own backups', async (t) => {
  const dataDir = await filledDirectory(t);
  const directory = join(dataDir, '..', 'backups');
  const path = join(dataDir, 'store');
  const { log } = rememberingLog();
  const backups = () => readdirSync(directory).filter((name) => name.endsWith('Z'));
  const made: string[] = [];
  for (const minute of ['01', '02', '03', '04', '05']) {
    // As after a restore, the file has the state of a backup but is another file.
    cpSync(path, `${path}.restored`, { recursive: true });
    rmSync(path, { recursive: true });
    renameSync(`${path}.restored`, path);
    await using store = await openStore(path, assert.fail);
    await using schedule = new BackupSchedule({
      directory,
      everyMs: 24 * HOUR_MS,
      keep: 2,
      dataDir,
      copyStore: (to, compact) => store.copyTo(to, compact),
      increments: { everyMs: HOUR_MS, store },
      log,
    });
    await schedule.look();
    // The name of a backup is its second, so this one gets an earlier name.
    const [newest = ''] = backups().filter((name) => !made.includes(name));
    const hourAgo = new Date(Date.now() - HOUR_MS).toISOString().slice(0, 13);
    const name = `troupe-${hourAgo}-${minute}-00Z`;
    renameSync(join(directory, newest), join(directory, name));
    made.push(name);
  }
  assert.deepEqual(
    backups().sort(),
    made.slice(-4),
    'two that were restored from, an early one, and the newest',
  );
});
