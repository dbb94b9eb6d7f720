/** Where the store lies in a data directory, and what can be wrong with it before it is opened. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { OperatorError, systemFailure } from '#src/core/operator-error.ts';
import { errorNameOf } from '#src/core/system-error.ts';
import { StoreFile } from './store-file.ts';

/** LMDB's data file in the directory of a store. */
export const DATA_FILE = 'data.mdb';
/** The table of LMDB's readers, beside it. */
export const LOCK_FILE = 'lock.mdb';

const RESTORE = 'Restore it from a backup (troupe restore).';

/**
 * Throws `OperatorError` when there is no store where one must have been: beside credentials or a keyring that only a store
 * that was used has. `root` is the data directory.
 */
export function requireExpectedStore(root: string, keyringFile: string): void {
  const store = join(root, 'store');
  if (existsSync(join(store, DATA_FILE))) return;
  const witness = [join(root, 'bootstrap.json'), keyringFile].find((path) => existsSync(path));
  if (witness === undefined) return;
  throw new OperatorError(
    `There is no store at ${store}, although ${witness} exists.`,
    'If a volume is not mounted, mount it; if the store was lost, restore it (troupe restore). To begin with an empty store, set TROUPE_NEW_STORE=true for one start.',
  );
}

/**
 * Throws `OperatorError` when the files of the store at `path` (the directory) cannot be mapped into memory safely: they are
 * empty, no store, cut short, or cannot be read. A store that does not exist yet is fine. Reads two pages, and all only
 * when the file is shorter than it could be.
 */
export function requireSoundFile(path: string): void {
  const file = join(path, DATA_FILE);
  let data: StoreFile;
  try {
    if (!statSync(file).isFile()) throw new OperatorError(`The store ${file} is not a file.`, RESTORE);
    data = StoreFile.open(file);
  } catch (error) {
    if (errorNameOf(error) === 'ENOENT') return;
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The store ${file} cannot be read`, error);
  }
  using opened = data;
  const damage = damageOf(opened);
  if (damage !== undefined) throw new OperatorError(`The store ${file} is damaged: ${damage}.`, RESTORE);
}

function damageOf(file: StoreFile): string | undefined {
  if (file.sizeBytes === 0) return 'the file is empty';
  if (file.meta() === undefined) return 'its head is not that of a store';
  return file.isComplete() ? undefined : file.walk().damage[0];
}
