/**
 * Reduces the store of a data directory to its contents. LMDB reuses the space of deleted records, but never returns
 * it to the disk. No server may run. The compacted copy is checked before it replaces the store.
 */
import { statSync } from 'node:fs';
import { chown, mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError, systemFailure } from '#src/base/errors/operator-error.ts';
import { DataDirectory } from '#storage/disk/data-directory.ts';
import { requireStoreIn } from '#storage/disk/store-folder.ts';
import { openStoreReader, type StoreReader } from '#storage/open-store.ts';
import { flush } from './file-copy.ts';

export interface Compacted {
  readonly records: number;
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}

/**
 * Resolves once the smaller store is on disk. The disk needs space for both; an interrupted call
 * leaves the store as it was. Rejects with `OperatorError` while a server uses the directory, when
 * a record is damaged, and on other problems.
 */
export async function compact(dataDir: string): Promise<Compacted> {
  using directory = await DataDirectory.claim(dataDir, requireStoreIn);
  const { storePath, compactingPath: draft } = directory;
  const file = join(storePath, 'data.mdb');
  const { size: bytesBefore, uid, gid } = statSync(file);
  try {
    await mkdir(draft, { mode: 0o700 });
    const records = await copyChecked(storePath, draft);
    const copy = join(draft, 'data.mdb');
    // When root makes the copy, the server's user must still be able to open it.
    if (uid !== statSync(copy).uid) await chown(copy, uid, gid);
    await flush(copy);
    await rename(copy, file);
    await rm(join(storePath, 'lock.mdb'), { force: true }); // LMDB's table of readers belongs to the removed file
    await flush(storePath);
    return { records, bytesBefore, bytesAfter: statSync(file).size };
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw systemFailure(`The store at ${storePath} cannot be compacted`, error);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * Returns the number of records in the copy. Throws unless there are as many as in the original,
 * none of them damaged.
 */
async function copyChecked(from: string, to: string): Promise<number> {
  await using original = await openStoreReader(from);
  await original.copyTo(to, true);
  await using copy = await openStoreReader(to);
  const [expected, found] = [soundRecords(original), soundRecords(copy)];
  if (expected === found) return found;
  throw new OperatorError(
    `The copy of the store has ${found} records instead of ${expected}.`,
    'Nothing was changed. Check the disk, and run troupe verify.',
  );
}

/** Returns how many records there are. Throws `OperatorError` when a record is damaged. */
function soundRecords(store: StoreReader): number {
  let count = 0;
  for (const { key, problem } of store.checkAll()) {
    if (problem !== undefined)
      throw new OperatorError(
        `The record ${key.join('/')} is damaged, so nothing was changed.`,
        'Run troupe verify, and troupe verify --repair.',
      );
    count++;
  }
  return count;
}
