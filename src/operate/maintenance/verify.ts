/** Reads everything in a data directory or a backup, and reports damage. Changes nothing. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '#src/base/errors/operator-error.ts';
import { StoreFile } from '#storage/disk/store-file.ts';
import { openStoreReader } from '#storage/open-store.ts';
import { isDraft } from './backup.ts';
import { differencesFromChain, fileStateOf, readChain } from './chain.ts';
import { MANIFEST_FILE } from './manifest.ts';
import { checkOverlaid } from './page-overlay.ts';

export interface Verified {
  /** Whether the directory is a backup, whose files have checksums. */
  readonly isBackup: boolean;
  readonly records: number;
  readonly files: number;
  /** The number of increments of a backup. */
  readonly increments: number;
  /** The faults, one line each. */
  readonly damage: readonly string[];
}

const MAX_DAMAGE_LINES = 1000;

/**
 * Resolves with the findings. Rejects with `OperatorError` when the store cannot be opened at all, or is that of an
 * incomplete backup.
 */
export async function verify(directory: string): Promise<Verified> {
  const damage: string[] = [];
  const note = (line: string) => {
    if (damage.length < MAX_DAMAGE_LINES) damage.push(line);
  };
  const isBackup = existsSync(join(directory, MANIFEST_FILE));
  let files = 0;
  let increments = 0;
  if (!isBackup && isDraft(resolve(directory)))
    throw new OperatorError(
      `${directory} is not a complete backup: it is still being made, or the backup was interrupted.`,
      'If no backup is being made there, delete the directory.',
    );
  if (isBackup) {
    const chain = readChain(directory);
    files = fileStateOf(chain).files.size;
    increments = chain.increments.length;
    for await (const line of differencesFromChain(chain)) note(line);
    if (damage.length > 0) return { isBackup, records: 0, files, increments, damage };
    if (increments > 0) {
      const { records, problems } = checkOverlaid(chain);
      for (const line of problems) note(line);
      return { isBackup, records, files, increments, damage };
    }
  }
  const path = join(directory, 'store');
  await using store = await openStoreReader(path);
  // A server may write during the check, so its pages are compared only when nothing changed
  // between the beginning and the end.
  using file = StoreFile.open(join(path, 'data.mdb'));
  const before = file.meta()?.transaction;
  const { damage: pages } = file.walk();
  if (file.meta()?.transaction === before) for (const line of pages) note(`store: ${line}`);
  let records = 0;
  for (const { key, problem } of store.checkAll()) {
    records++;
    if (problem !== undefined) note(`record ${key.join('/')}: ${problem}`);
  }
  return { isBackup, records, files, increments, damage };
}
