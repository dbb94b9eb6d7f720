/**
 * Decides whether a store continues the state in a backup: only then do the pages of later transactions, applied to
 * that state, give the present store.
 *
 * Before each copy and each increment the server writes a new random mark into the store, and the manifest names it.
 * A store that was set back, for instance together with its disk, has an older mark. A data file that was replaced
 * (compacted, restored, copied) may have the mark, but numbers its pages or transactions differently. So the manifest
 * also names the file itself.
 */
import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { defineRecord } from '#storage/codec.ts';
import { SYSTEM } from '#storage/keys.ts';
import type { Store } from '#storage/store.ts';

/** The name of a state of a store. */
export interface Lineage {
  readonly mark: string;
  /** The inode of the file, and the time of its creation. */
  readonly inode: number;
  readonly bornMs: number;
  /** The last transaction of the state. */
  readonly transaction: number;
}

interface MarkRecord {
  readonly mark: string;
  /**
   * The mark of the backup or increment that comes before this one in the chain; null when this mark begins a new
   * backup.
   */
  readonly follows: string | null;
}

const backupMark = defineRecord<MarkRecord>('backup-mark', 1);

/** Writes a new mark into the store, and resolves with it once it is on disk. `follows` is the mark that it continues. */
export async function markStore(store: Store, follows: string | null = null): Promise<string> {
  const mark = randomUUID();
  store.write((tx) => tx.put(backupMark, { mark, follows }, SYSTEM));
  await store.durable();
  return mark;
}

/** Returns the lineage of a copy of the store in the directory `path`. `transaction` is the last one in the copy. */
export function lineageOf(path: string, mark: string, transaction: bigint): Lineage {
  return { mark, ...fileOf(path), transaction: Number(transaction) };
}

/** Returns whether the store in the directory `path` is a continuation of that state. */
export function continues(store: Store, path: string, { mark, inode, bornMs }: Lineage): boolean {
  const file = fileOf(path);
  const found = store.get(backupMark, SYSTEM);
  // The increment for which the newer mark was written may never have been completed.
  const isMarked = found?.mark === mark || found?.follows === mark;
  return isMarked && file.inode === inode && file.bornMs === bornMs;
}

function fileOf(path: string): Pick<Lineage, 'inode' | 'bornMs'> {
  const { ino, birthtimeMs } = statSync(join(path, 'data.mdb'));
  return { inode: ino, bornMs: birthtimeMs };
}
