/**
 * A server that only increases counters, in its store and in a file, and backs both up with
 * increments, one after the other. Before each increment it prints its counters. Its arguments are
 * the data directory and the directory of the backups.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BackupSchedule } from '#src/operate/maintenance/backup-schedule.ts';
import { openStore } from '#storage/open-store.ts';
import { things } from './filled-directory.ts';
import { rememberingLog } from './temporary-store.ts';

const [, , dataDir = '', directory = ''] = process.argv;
const store = await openStore(join(dataDir, 'store'), (error) => {
  throw error;
});
const { log, lines } = rememberingLog();
const schedule = new BackupSchedule({
  directory,
  everyMs: 3_600_000,
  keep: 1,
  dataDir,
  copyStore: (to, compact) => store.copyTo(to, compact),
  increments: { everyMs: 0, store },
  log,
});
for (let n = Number(store.get(things, 'ws_1', 'count') ?? 0) + 1; ; n++) {
  store.write((tx) => {
    tx.put(things, String(n), 'ws_1', 'count');
    tx.put(things, `${n}`.padEnd((n % 30) * 1000), 'ws_1', `t${n % 500}`);
  });
  await store.durable();
  writeFileSync(join(dataDir, 'workspaces', 'ws_1', 'files', 'count'), String(n));
  await schedule.look();
  await schedule.look(); // the first backup may have been under way
  const error = lines.find(({ level }) => level === 'error');
  if (error !== undefined) throw new Error(JSON.stringify(error));
  process.stdout.write(`${n}\n`);
}
