import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { InvalidArgumentError } from 'commander';
import { commandConfig } from '../access.ts';
import type { CommandGroup } from '../command-group.ts';
import { examples } from '../examples.ts';
import { CommandEnd, CommandFailure, EXIT } from '../exit-code.ts';
import { printJson } from '../terminal.ts';

interface RepairFlags {
  readonly repair?: true;
  readonly record?: readonly string[];
  readonly from?: string;
}

/**
 * `troupe backup`, `troupe restore`, `troupe verify`, `troupe migrate` and `troupe compact`. These commands work on the data
 * directory, so they run on the server's machine.
 */
export const backup: CommandGroup = (program, { terminal, env, cwd, wantsJson }) => {
  const dataDirOf = () => commandConfig({ env, cwd }).config.dataDir;
  // The modules are imported on demand, because they load the store, which no other command needs.
  const make = program
    .command('backup')
    .summary('back up the data directory, also while the server runs')
    .description(
      'back up the store and the files of workspaces, also while the server runs. The backup does not contain the keyring: back that up separately.',
    )
    .argument('<directory>', 'the folder to make for the backup; it must not exist yet')
    .option('--compact', 'leave out the free pages of the store, for a smaller backup that takes longer')
    .action(async (directory: string, options: { compact?: true }, command) => {
      process.umask(0o077);
      const { backUp } = await import('#src/operate/maintenance/backup.ts');
      const to = resolve(cwd, directory);
      const { dataDir, keyringFile } = commandConfig({ env, cwd }).config;
      const { sealingOf } = await import('#src/operate/maintenance/nodes-sealing.ts');
      const sealing = existsSync(keyringFile) ? sealingOf(keyringFile) : undefined;
      const manifest = await backUp({ dataDir, to, sealing, compact: options.compact === true });
      if (wantsJson(command)) return printJson(terminal, { directory: to, ...manifest });
      const { store, files, keyIds, skipped } = manifest;
      terminal.out(`${to}: a store of ${store.bytes} bytes and ${files.length} files\n`);
      if (skipped.length > 0) terminal.out(`  left out: ${skipped.length} (listed in manifest.json)\n`);
      terminal.out(`  to restore it, keep the keyring with ${keyIds.join(', ') || 'no key'}\n`);
    });
  examples(make, ['troupe backup /backups/today', 'troupe backup --compact /backups/$(date +%F)']);

  const restoring = program
    .command('restore')
    .summary('restore a backup into an empty data directory')
    .description(
      'restore a backup and its increments into a data directory that has no store and no files. The server must not run. Restore the keyring separately.',
    )
    .argument('<backup>', 'the directory of the backup')
    .option(
      '--until <time>',
      'leave out increments made after this time, such as 2026-01-31T12:00:00Z',
      timeOf,
    )
    .action(async (from: string, options: { until?: number }, command) => {
      process.umask(0o077);
      const { restore } = await import('#src/operate/maintenance/restore.ts');
      const dataDir = dataDirOf();
      const restored = await restore({ from: resolve(cwd, from), dataDir, ...options });
      if (wantsJson(command)) return printJson(terminal, { dataDir, ...restored });
      terminal.out(`${dataDir}: restored as of ${restored.createdAt}\n`);
      terminal.out(`  the server needs a keyring with ${restored.keyIds.join(', ') || 'no key'}\n`);
    });
  examples(restoring, [
    'TROUPE_DATA_DIR=/var/lib/troupe troupe restore /backups/today',
    'troupe restore --until 2026-01-31T12:00:00Z /backups/troupe-2026-01-31T03-00-00Z',
  ]);

  const verifying = program
    .command('verify')
    .summary('read everything that is stored, and report damage')
    .description(
      'read everything in a data directory or a backup, and report damage. The server may run. The exit code is 1 if there is damage.',
    )
    .argument('[directory]', 'a data directory or a backup (default: the data directory of the settings)')
    .option('--repair', 'take damaged records out of the store, and keep their bytes; no server may run')
    .option('--record <key...>', 'with --repair: only these records, by the names that this command lists')
    .option('--from <backup>', 'with --repair: replace the damaged records by those of this backup')
    .action(async (directory: string | undefined, options: RepairFlags, command) => {
      if (options.repair === true)
        return repairDamage(
          directory === undefined ? dataDirOf() : resolve(cwd, directory),
          options,
          command,
        );
      if (options.record !== undefined || options.from !== undefined)
        throw new CommandFailure('--record and --from need --repair.', EXIT.usage);
      const { verify } = await import('#src/operate/maintenance/verify.ts');
      const place = directory === undefined ? dataDirOf() : resolve(cwd, directory);
      const found = await verify(place);
      if (wantsJson(command)) printJson(terminal, { directory: place, ...found });
      else {
        for (const line of found.damage) terminal.out(`${line}\n`);
        const increments = found.increments > 0 ? ` and ${found.increments} increments` : '';
        const files = found.isBackup ? ` and ${found.files} files${increments}` : '';
        const verdict = found.damage.length === 0 ? 'no damage' : 'damaged';
        terminal.out(`${place}: ${found.records} records${files} read, ${verdict}\n`);
      }
      if (found.damage.length > 0) throw new CommandEnd(EXIT.failed);
    });
  const repairDamage = async (dataDir: string, { record, from }: RepairFlags, command: Command) => {
    process.umask(0o077);
    const { repair } = await import('#src/operate/maintenance/repair.ts');
    const { directory: kept, records } = await repair({
      dataDir,
      records: record,
      from: from === undefined ? undefined : resolve(cwd, from),
    });
    if (wantsJson(command)) return printJson(terminal, { dataDir, directory: kept, records });
    for (const { name, outcome, problem } of records) terminal.out(`${outcome}: ${name} (${problem})\n`);
    if (kept === undefined) return terminal.out(`${dataDir}: no record is damaged\n`);
    const dropped = records.filter(({ outcome }) => outcome === 'dropped').length;
    terminal.out(`${dataDir}: ${records.length - dropped} records restored and ${dropped} dropped\n`);
    terminal.out(`  their damaged bytes are in ${kept}\n`);
  };
  const migrating = program
    .command('migrate')
    .summary('convert the store to the format of this release, or rehearse the conversion')
    .description(
      'convert the store to the format of this release, as the start of the server also does. An interrupted conversion continues. No server may run.',
    )
    .option(
      '--check',
      'convert only a copy, say how long the conversion took, and remove the copy; a server may run',
    )
    .option('--copy-in <directory>', 'with --check: the folder for the copy (default: the data directory)')
    .action(async (options: { check?: true; copyIn?: string }, command) => {
      process.umask(0o077);
      if (options.copyIn !== undefined && options.check !== true)
        throw new CommandFailure('--copy-in needs --check.', EXIT.usage);
      const { migrate, rehearse } = await import('#src/operate/maintenance/migrate.ts');
      const dataDir = dataDirOf();
      const copyIn = options.copyIn === undefined ? undefined : resolve(cwd, options.copyIn);
      const json = wantsJson(command);
      const onProgress = (line: string) => {
        if (!json) terminal.err(`${line}\n`);
      };
      const found =
        options.check === true
          ? await rehearse({ dataDir, copyIn, onProgress })
          : await migrate({ dataDir, onProgress });
      if (json) printJson(terminal, { dataDir, ...found });
      else {
        for (const line of found.damage) terminal.out(`${line}\n`);
        const seconds = (found.ms / 1000).toFixed(1);
        const subject = options.check === true ? `a copy of ${dataDir}` : dataDir;
        terminal.out(
          `${subject}: format ${found.from} to ${found.to} in ${seconds} s, ${found.records} records, `,
        );
        terminal.out(found.damage.length === 0 ? 'all sound\n' : `${found.damage.length} damaged\n`);
      }
      if (found.damage.length > 0) throw new CommandEnd(EXIT.failed);
    });
  examples(migrating, ['troupe migrate --check', 'troupe migrate --check --copy-in /mnt/spare --json']);
  const compacting = program
    .command('compact')
    .summary('give free space within the store back to the disk')
    .description(
      'shrink the store to the size of its records. The server must not run, and the disk needs space for a second store.',
    )
    .action(async (_, command) => {
      process.umask(0o077);
      const { compact } = await import('#src/operate/maintenance/compact.ts');
      const dataDir = dataDirOf();
      const found = await compact(dataDir);
      if (wantsJson(command)) return printJson(terminal, { dataDir, ...found });
      const { records, bytesBefore, bytesAfter } = found;
      terminal.out(`${dataDir}: ${records} records, ${bytesBefore} bytes before and ${bytesAfter} after\n`);
    });
  examples(compacting, ['troupe compact', 'TROUPE_DATA_DIR=/var/lib/troupe troupe compact --json']);
  examples(verifying, [
    'troupe verify',
    'troupe verify /backups/today',
    'troupe verify --json | jq .damage',
    'troupe verify --repair --from /backups/today',
  ]);
};

function timeOf(text: string): number {
  const time = Date.parse(text);
  if (Number.isNaN(time)) throw new InvalidArgumentError('It must be a time such as 2026-01-31T12:00:00Z.');
  return time;
}
